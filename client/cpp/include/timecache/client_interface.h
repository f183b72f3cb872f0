// The data calls of a client, for code that is tested without a server.

#ifndef TIMECACHE_CLIENT_INTERFACE_H_
#define TIMECACHE_CLIENT_INTERFACE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timecache/call_options.h"
#include "timecache/settle.h"
#include "timecache/types.h"

namespace timecache {

class Batch;             // timecache/batch.h
struct OperationResult;  // timecache/operation.h

// Client implements it by calling a server, and documents each call. A test
// passes another implementation to the code under test, e.g. one of
// GoogleMock's:
//
//   class MockClient : public timecache::ClientInterface {
//    public:
//     MOCK_METHOD(absl::StatusOr<std::optional<timecache::Entry>>, Get,
//                 (std::string_view key, const timecache::GetOptions& options,
//                  const timecache::CallOptions& call),
//                 (const, override));
//     ...
//   };
//
// A minor version may add calls.
class ClientInterface {
 public:
  virtual ~ClientInterface() = default;

  virtual absl::StatusOr<PutResult> Put(std::string_view key,
                                        std::string_view value,
                                        const PutOptions& options = {},
                                        const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<std::optional<Entry>> Get(
      std::string_view key, const GetOptions& options = {},
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<RemoveResult> Remove(
      std::string_view key, const RemoveOptions& options = {},
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<bool> Contains(std::string_view key,
                                        const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<SizeResult> Size(
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<std::optional<uint64_t>> Touch(
      std::string_view key, const TouchOptions& options = {},
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<AppendResult> Append(
      std::string_view key, std::string_view value,
      const AppendOptions& options = {},
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<CombineResult> Combine(
      std::string_view key, Combination combination, int64_t operand,
      const CombineOptions& options = {},
      const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<GatherResult> Gather(
      std::string_view key, std::string_view part, std::string_view value,
      const GatherOptions& options, const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<std::vector<OperationResult>> Execute(
      const Batch& batch, const CallOptions& call = {}) const = 0;
  virtual absl::Status Scan(const ScanOptions& options,
                            absl::FunctionRef<bool(Entry entry)> visit,
                            const CallOptions& call = {}) const = 0;
  virtual absl::StatusOr<std::vector<SettleResult>> Settle(
      std::string_view group, const std::vector<Settlement>& settlements,
      const CallOptions& call = {}) const = 0;

 protected:
  ClientInterface() = default;
  ClientInterface(const ClientInterface&) = default;
  ClientInterface& operator=(const ClientInterface&) = default;
};

}  // namespace timecache

#endif  // TIMECACHE_CLIENT_INTERFACE_H_
