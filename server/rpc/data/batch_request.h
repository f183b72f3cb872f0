// An ExecuteRequest, decoded where it lies.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_REQUEST_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_REQUEST_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/engine/store/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {

// The operations of one batch. Their keys and values are views of the message's
// bytes: nothing is copied, and nothing allocated once the object has seen a
// batch as large.
//
// A message in the plain form that every serializer writes (each field once, no
// unknown ones) is read by hand in one pass. Any other goes through the
// generated parser, and gives the same operations.
//
// Not thread-safe.
class BatchRequest {
 public:
  static constexpr size_t kMaxOperations = 4096;

  // An operation that is malformed in a way that the engine does not see.
  struct Refused {
    size_t index;
    absl::Status status;
    // Of one that is none of them: kPut.
    OpKind kind;
  };

  // What an operation of an independent request says of its call.
  struct CallIds {
    size_t index;
    absl::string_view request_id;
    absl::string_view traceparent;
  };

  // Decodes another message. INVALID_ARGUMENT if no operation can be applied:
  // the bytes do not parse as an ExecuteRequest, or have no or too many
  // operations, or too many bytes for an atomic batch.
  absl::Status Decode(const grpc::ByteBuffer& message);

  // Frees the message, and what is large of the rest: 4096 operations leave some
  // 2 MiB for the next message.
  void Clear();

  // Refuses the operations that `check` has an error for; others than those in
  // refused(). `index` is that in the request.
  void Refuse(
      absl::FunctionRef<absl::Status(const Operation&, size_t index)> check);
  // Nothing for an operation without any.
  const CallIds* CallIdsOf(size_t index) const;

  // The namespace's name, as received.
  absl::string_view name() const { return name_; }
  // The operations that can be tried, in order, without the refused ones.
  absl::Span<const Operation> operations() const { return operations_; }
  // Whether all of them are to be applied, or none.
  bool atomic() const { return atomic_; }
  // Whether they are plain calls. Not with atomic().
  bool independent() const { return independent_; }
  // In order; of those that have any.
  absl::Span<const CallIds> call_ids() const { return call_ids_; }
  // In order. Operation `index` of the request is not in operations().
  absl::Span<const Refused> refused() const { return refused_; }

 private:
  bool DecodePlain(absl::string_view bytes);
  absl::Status DecodeAny(absl::string_view bytes);
  Gathering* NewGathering();
  void DropGatherings();

  // The bytes that the views refer to.
  grpc::Slice bytes_;
  std::unique_ptr<v1::ExecuteRequest> parsed_;

  absl::string_view name_;
  bool atomic_ = false;
  bool independent_ = false;
  std::vector<CallIds> call_ids_;
  std::vector<Operation> operations_;
  std::vector<Refused> refused_;
  // Objects that the operations refer to, and then those of earlier ones, for
  // reuse.
  std::deque<Gathering> gatherings_;
  size_t gatherings_used_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_REQUEST_H_
