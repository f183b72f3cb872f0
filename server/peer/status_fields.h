// An error as nodes tell it to each other.

#ifndef TIMECACHED_SERVER_PEER_STATUS_FIELDS_H_
#define TIMECACHED_SERVER_PEER_STATUS_FIELDS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "server/peer/field_coder.h"

// Where a lookup by argument finds it.
namespace absl {

// All of it: code, message, and what error.h attaches.
template <typename Coder, timecache::server::Is<Status> T>
void CodeFields(Coder& code, T& status) {
  int number = static_cast<int>(status.code());
  std::vector<std::string> payloads;
  if constexpr (Coder::kReads) {
    absl::string_view message;
    code(number, message, payloads);
    status = Status(static_cast<StatusCode>(number), message);
    for (size_t i = 0; i + 1 < payloads.size(); i += 2) {
      status.SetPayload(payloads[i], Cord(payloads[i + 1]));
    }
  } else {
    status.ForEachPayload([&](absl::string_view url, const Cord& value) {
      payloads.emplace_back(url);
      payloads.emplace_back(value);
    });
    code(number, status.message(), payloads);
  }
}

}  // namespace absl

#endif  // TIMECACHED_SERVER_PEER_STATUS_FIELDS_H_
