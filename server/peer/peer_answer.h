// The bodies of calls and their answers.

#ifndef TIMECACHED_SERVER_PEER_PEER_ANSWER_H_
#define TIMECACHED_SERVER_PEER_PEER_ANSWER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/peer/event_fields.h"
#include "server/peer/field_coder.h"
#include "server/peer/peer_call.h"
#include "server/peer/store_fields.h"

namespace timecache::server {

// What UpdateNamespace and UpdateGroup are answered.
template <typename Info>
struct UpdateAnswer {
  // The options were not those that the caller had seen: nothing was done.
  bool changed = false;
  Info info;
};

template <typename Coder, typename T>
requires Is<T, UpdateAnswer<NamespaceInfo>> || Is<T, UpdateAnswer<GroupInfo>>
void CodeFields(Coder& code, T& answer) { code(answer.changed, answer.info); }

// Options that can be compared: as they are written.
template <typename Options>
std::string WrittenOptions(const Options& options) {
  FieldWriter writer;
  writer(options);
  return writer.Take();
}

// `call` is a PeerCall's number: see kWholeNamespace.
template <typename... Fields>
std::string WriteCall(uint8_t call, const Fields&... fields) {
  FieldWriter writer;
  writer(call, fields...);
  return writer.Take();
}

// The status of an answer, before what follows it.
inline absl::Status ReadStatus(FieldReader* from) {
  bool failed = false;
  absl::Status status;
  (*from)(failed);
  if (failed) (*from)(status);
  return from->ok() ? status
                    : absl::InternalError("a node's answer is malformed");
}
inline void WriteStatus(const absl::Status& status, FieldWriter* to) {
  (*to)(!status.ok());
  if (!status.ok()) (*to)(status);
}

template <typename Answer>
absl::StatusOr<Answer> ReadAnswer(const absl::StatusOr<std::string>& body) {
  if (!body.ok()) return body.status();
  FieldReader reader(*body);
  absl::Status status = ReadStatus(&reader);
  if (!status.ok()) return status;
  Answer answer = {};
  reader(answer);
  if (!reader.ok()) return absl::InternalError("a node's answer is malformed");
  return answer;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PEER_ANSWER_H_
