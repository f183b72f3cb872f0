// BackupJournal as its clients see it, with a journal that a test makes.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;
using Response = v1::BackupJournalResponse;

constexpr uint64_t kBytes = 10'000'000;

// What all backups of a test share.
struct Journal {
  std::atomic<int> open{0};
  std::atomic<uint64_t> read{0};
  uint64_t bytes = kBytes;
  absl::Status error;
};

class FakeBackup final : public server::BackupBytes {
 public:
  explicit FakeBackup(Journal* journal) : journal_(*journal) {
    ++journal_.open;
  }
  ~FakeBackup() override { --journal_.open; }
  uint64_t total_bytes() const override { return journal_.bytes; }
  absl::StatusOr<std::string> Read(size_t bytes) override {
    if (done_ > 0 && !journal_.error.ok()) return journal_.error;
    const std::string piece(std::min<uint64_t>(bytes, journal_.bytes - done_),
                            'b');
    done_ += piece.size();
    journal_.read += piece.size();
    return piece;
  }

 private:
  Journal& journal_;
  uint64_t done_ = 0;
};

class BackupTest : public ::testing::Test {
 protected:
  TestServerOptions Options() {
    TestServerOptions options;
    options.change = [this](server::ServerOptions* to) {
      to->backup_source = [this] {
        return std::make_unique<FakeBackup>(&journal_);
      };
      if (impatient_) {
        to->limits.mutable_response_timeout()->set_seconds(0);
        to->limits.mutable_response_timeout()->set_nanos(100'000'000);
      }
    };
    return options;
  }
  // One that was begun, on a connection of its own.
  struct Stream {
    explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
        : stub(v1::ServerService::NewStub(channel)),
          reader(stub->BackupJournal(&context, v1::BackupJournalRequest())) {}
    std::unique_ptr<v1::ServerService::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<Response>> reader;
  };
  std::unique_ptr<Stream> Begin(TestServer* server) {
    return std::make_unique<Stream>(server->NewChannel());
  }
  grpc::Status ReadAll(Stream* stream, uint64_t* bytes = nullptr) const {
    Response response;
    while (stream->reader->Read(&response)) {
      EXPECT_EQ(response.total_bytes(), journal_.bytes);
      EXPECT_LE(response.data().size(), size_t{1} << 20);
      if (bytes != nullptr) *bytes += response.data().size();
    }
    return stream->reader->Finish();
  }

  Journal journal_;
  bool impatient_ = false;
};

TEST_F(BackupTest, AllOfItComesInPieces) {
  TestServer server(Options());
  const auto stream = Begin(&server);
  uint64_t bytes = 0;
  const grpc::Status status = ReadAll(stream.get(), &bytes);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(bytes, kBytes);
  EXPECT_TRUE(Await([&] { return journal_.open == 0; }));
}

TEST_F(BackupTest, AReaderThatTakesNothingIsWaitedForAndThenEnded) {
  impatient_ = true;
  // More than gRPC's windows may become.
  journal_.bytes = 10 * kBytes;
  TestServer server(Options());
  const auto stream = Begin(&server);
  Response response;
  ASSERT_TRUE(stream->reader->Read(&response));
  // What gRPC holds for it, and no more, was read of the journal.
  EXPECT_TRUE(Await([&] { return journal_.open == 0; }));
  EXPECT_LT(journal_.read, journal_.bytes);
  EXPECT_FALSE(ReadAll(stream.get()).ok());
}

TEST_F(BackupTest, ADrainEndsItAndWaitsForNoReader) {
  TestServer server(Options());
  const auto reading = Begin(&server);
  const auto stalled = Begin(&server);
  Response response;
  ASSERT_TRUE(reading->reader->Read(&response));
  EXPECT_TRUE(Await([&] { return journal_.open == 2; }));
  absl::Notification drained;
  server::DrainReport report;
  std::thread drain([&] {
    report = server.server().Drain(60 * server::kMicrosPerSecond);
    drained.Notify();
  });
  const grpc::Status status = ReadAll(reading.get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(PartsOf(status).reason, v1::DRAINING);
  drain.join();
  EXPECT_TRUE(report.in_time);
  EXPECT_EQ(report.pipelines_cut, 0u);
  EXPECT_EQ(journal_.open, 0);
}

TEST_F(BackupTest, AnErrorOfTheDiskEndsItAsNoWholeOne) {
  journal_.error = absl::DataLossError("a segment is cut");
  TestServer server(Options());
  const auto stream = Begin(&server);
  const grpc::Status status = ReadAll(stream.get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(), HasSubstr("a segment is cut"));
}

}  // namespace
}  // namespace timecache::test
