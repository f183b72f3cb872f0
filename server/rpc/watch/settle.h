// SettleExpired, from its request to the group and back.

#ifndef TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_
#define TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/group_types.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/refusal_count.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {

inline constexpr size_t kMaxSettlements = 4'096;

// INVALID_ARGUMENT for errors that the engine cannot see: a malformed token,
// no action, malformed durations, fields of another action.
absl::StatusOr<Settlement> ToSettlement(const v1::Settlement& from);

// A v1.SettleExpiredRequest, decoded. One of ACKs alone, as nearly all are, is
// read in place; any other is parsed by the generated class, whose objects take
// four allocations an event.
class SettleRequest {
 public:
  // As the one of generated messages.
  friend absl::Status TakeRequest(const grpc::ByteBuffer& bytes,
                                  SettleRequest* request,
                                  absl::string_view large_field);

  const std::string& namespace_name() const { return namespace_name_; }
  const std::string& group() const { return group_; }
  // Settlements of the request. With more than kMaxSettlements, none of them is
  // below.
  size_t count() const { return count_; }
  // Those that the engine is to try.
  absl::Span<const Settlement> settlements() const { return settlements_; }
  // Of each settlement: its error, or OK if it is one of those. Empty: all are.
  absl::Span<const absl::Status> checked() const { return checked_; }

 private:
  bool ReadAcks(absl::string_view bytes);
  void Convert();

  std::string namespace_name_;
  std::string group_;
  size_t count_ = 0;
  std::vector<Settlement> settlements_;
  std::vector<absl::Status> checked_;
  // What the reasons of settlements are of; null for ACKs.
  std::unique_ptr<v1::SettleExpiredRequest> parsed_;
};

// What becomes of one: a v1.SettleExpiredResponse.
struct SettleAnswer {
  // Not owned.
  const SettleRequest* request = nullptr;
  std::vector<SettleResult> results;
};

// As the ToBytes of generated messages. Thread-safe.
grpc::ByteBuffer ToBytes(const SettleAnswer& answer, ResponseAccount* account);

// Gets the error that prevented all settlements, or OK, and which of them a
// limit refused.
using SettleDone =
    absl::AnyInvocable<void(absl::Status, const RefusalCount& refused)>;

// Applies the settlements of `request`, each by itself, and fills `*answer`.
// Both must live until `done` is called, on whichever thread the store
// completes.
void Settle(const SettleRequest& request, Store* store, SettleAnswer* answer,
            SettleDone done);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_SETTLE_H_
