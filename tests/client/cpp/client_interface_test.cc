// Code that calls a ClientInterface is tested without a server.
#include "timecache/client_interface.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/operation.h"

namespace timecache {
namespace {

using ::testing::_;
using ::testing::Field;
using ::testing::Return;

class MockClient : public ClientInterface {
 public:
  MOCK_METHOD(absl::StatusOr<PutResult>, Put,
              (std::string_view key, std::string_view value,
               const PutOptions& options, const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<std::optional<Entry>>, Get,
              (std::string_view key, const GetOptions& options,
               const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<RemoveResult>, Remove,
              (std::string_view key, const RemoveOptions& options,
               const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<bool>, Contains,
              (std::string_view key, const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<SizeResult>, Size, (const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<std::optional<uint64_t>>, Touch,
              (std::string_view key, const TouchOptions& options,
               const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<AppendResult>, Append,
              (std::string_view key, std::string_view value,
               const AppendOptions& options, const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<CombineResult>, Combine,
              (std::string_view key, Combination combination, int64_t operand,
               const CombineOptions& options, const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<GatherResult>, Gather,
              (std::string_view key, std::string_view part,
               std::string_view value, const GatherOptions& options,
               const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<std::vector<OperationResult>>, Execute,
              (const Batch& batch, const CallOptions& call), (const, override));
  MOCK_METHOD(absl::Status, Scan,
              (const ScanOptions& options,
               absl::FunctionRef<bool(Entry entry)> visit,
               const CallOptions& call),
              (const, override));
  MOCK_METHOD(absl::StatusOr<std::vector<SettleResult>>, Settle,
              (std::string_view group,
               const std::vector<Settlement>& settlements,
               const CallOptions& call),
              (const, override));
};

// Takes a lock that expires, as a program under test would.
absl::StatusOr<bool> TakeLock(const ClientInterface& client,
                              std::string_view name) {
  const auto put =
      client.Put(name, "mine", {.condition = PutCondition::kIfAbsent});
  if (absl::IsFailedPrecondition(put.status())) return false;
  if (!put.ok()) return put.status();
  return true;
}

TEST(ClientInterfaceTest, MockStandsInForAServer) {
  const MockClient client;
  EXPECT_CALL(client,
              Put(std::string_view("lock"), _,
                  Field(&PutOptions::condition, PutCondition::kIfAbsent), _))
      .WillOnce(Return(PutResult{.version = 1}))
      .WillOnce(Return(absl::FailedPreconditionError("it is there")))
      .WillOnce(Return(absl::UnavailableError("no server")));
  EXPECT_EQ(TakeLock(client, "lock").value(), true);
  EXPECT_EQ(TakeLock(client, "lock").value(), false);
  EXPECT_TRUE(absl::IsUnavailable(TakeLock(client, "lock").status()));
}

TEST(ClientInterfaceTest, ClientIsOne) {
  const FakeService service;
  const Client client = service.MakeClient();
  EXPECT_EQ(TakeLock(client, "lock").value(), true);
  EXPECT_EQ(TakeLock(client, "lock").value(), false);
}

}  // namespace
}  // namespace timecache
