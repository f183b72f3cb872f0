// The end of a server that is in use: what was accepted is done and answered,
// what was not is nowhere, and every watcher has heard of all deaths.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using Stub = v1::TimeCacheService::Stub;

constexpr int64_t kLongGraceUs = 60 * server::kMicrosPerSecond;
constexpr int kCallers = 4;
constexpr int kPipelines = 4;
constexpr int kWatchers = 100;
constexpr int kWatchersPerConnection = 20;
constexpr int kDeaths = 200;
constexpr int kBatch = 8;
// Work that each caller does before the drain begins.
constexpr int kBefore = 50;
// A caller that is not stopped by then never will be.
constexpr int kMaxCalls = 10'000'000;

// Whether the store holds it, asked behind the API's back.
bool Holds(TestServer* server, const std::string& key) {
  const auto map = server->registry().Find("default").value();
  return map->Apply(server::Operation::Get(key), server->now_us()).found;
}

// Puts PREFIX0, PREFIX1, .. one by one until that is refused.
class Caller {
 public:
  Caller(TestServer* server, std::string prefix)
      : server_(server),
        prefix_(std::move(prefix)),
        stub_(Stub(server->NewChannel())),
        thread_([this] { Run(); }) {}

  int done() const { return done_; }
  void Join() { thread_.join(); }

  void Check() {
    EXPECT_EQ(end_.error_code(), StatusCode::UNAVAILABLE)
        << end_.error_message();
    EXPECT_EQ(PartsOf(end_).reason, v1::DRAINING);
    for (int i = 0; i < done_; ++i) {
      EXPECT_TRUE(Holds(server_, Key(i))) << Key(i) << " was answered";
    }
    EXPECT_FALSE(Holds(server_, Key(done_))) << Key(done_) << " was refused";
  }

 private:
  std::string Key(int i) const { return absl::StrCat(prefix_, i); }
  void Run() {
    for (int i = 0; i < kMaxCalls; ++i) {
      v1::PutRequest request;
      request.set_namespace_("default");
      request.set_key(Key(i));
      end_ = Call(&stub_, &Stub::Put, request).status;
      if (!end_.ok()) return;
      ++done_;
    }
  }

  TestServer* const server_;
  const std::string prefix_;
  Stub stub_;
  std::atomic<int> done_{0};
  grpc::Status end_;
  std::thread thread_;
};

// Puts batches of kBatch by a pipeline: one thread writes, another reads, which
// is how users of the synchronous API do it.
class PipelineCaller {
 public:
  PipelineCaller(TestServer* server, std::string prefix)
      : server_(server),
        prefix_(std::move(prefix)),
        stub_(Stub(server->NewChannel())) {
    SetDeadline(&context_);
    stream_ = stub_.Pipeline(&context_);
    reader_ = std::thread([this] { Read(); });
    writer_ = std::thread([this] { Write(); });
  }

  int done() const { return answered_; }
  void Join() {
    writer_.join();
    reader_.join();
    end_ = stream_->Finish();
  }

  void Check() {
    EXPECT_EQ(end_.error_code(), StatusCode::UNAVAILABLE)
        << end_.error_message();
    EXPECT_EQ(PartsOf(end_).reason, v1::DRAINING);
    for (int i = 0; i < answered_ * kBatch; ++i) {
      EXPECT_TRUE(Holds(server_, Key(i))) << Key(i) << " was answered";
    }
    const int sent = sent_ * kBatch;
    for (int i = answered_ * kBatch; i < sent; ++i) {
      EXPECT_FALSE(Holds(server_, Key(i))) << Key(i) << " was not answered";
    }
  }

 private:
  std::string Key(int i) const { return absl::StrCat(prefix_, i); }
  void Write() {
    for (int i = 0; i < kMaxCalls; i += kBatch) {
      v1::ExecuteRequest request;
      request.set_namespace_("default");
      for (int j = 0; j < kBatch; ++j) {
        request.add_operations()->mutable_put()->set_key(Key(i + j));
      }
      ++sent_;
      if (!stream_->Write(request)) return;
    }
  }
  void Read() {
    v1::ExecuteResponse response;
    while (stream_->Read(&response)) {
      EXPECT_EQ(response.results_size(), kBatch);
      ++answered_;
    }
  }

  TestServer* const server_;
  const std::string prefix_;
  Stub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>>
      stream_;
  std::atomic<int> sent_{0};
  std::atomic<int> answered_{0};
  grpc::Status end_;
  std::thread reader_;
  std::thread writer_;
};

class DrainLoadTest : public ::testing::Test {
 protected:
  void StartWatchers() {
    for (int i = 0; i < kWatchers; ++i) {
      if (i % kWatchersPerConnection == 0) {
        stubs_.push_back(v1::TimeCacheService::NewStub(server_.NewChannel()));
      }
      watchers_.push_back(
          std::make_unique<WatchReader>(stubs_.back().get(), "default"));
      ASSERT_TRUE(watchers_.back()->Next());
    }
  }
  // Each has heard of all that had died when the drain began.
  void CheckWatchers(int64_t died_us) {
    for (auto& watcher : watchers_) {
      int64_t watermark_us = 0;
      while (const auto message = watcher->Next()) {
        watermark_us = ToUs(message->watermark());
      }
      const grpc::Status status = watcher->Drain();
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_GE(watermark_us, died_us);
      EXPECT_EQ(watcher->events(), static_cast<size_t>(kDeaths));
    }
  }

  TestServer server_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  std::vector<std::unique_ptr<WatchReader>> watchers_;
};

// Waits until each has done some work.
template <typename Callers>
void AwaitWork(const Callers& callers) {
  for (const auto& caller : callers) {
    Await([&] { return caller->done() >= kBefore; });
  }
}

TEST_F(DrainLoadTest, LosesNothingThatItAccepted) {
  ASSERT_NO_FATAL_FAILURE(StartWatchers());
  server_.Fill(kDeaths, "dying", "value");
  server_.AdvanceBy(2 * kTtlUs);
  const int64_t died_us = server_.now_us();
  std::vector<std::unique_ptr<Caller>> callers;
  std::vector<std::unique_ptr<PipelineCaller>> pipelines;
  for (int i = 0; i < kCallers; ++i) {
    callers.push_back(
        std::make_unique<Caller>(&server_, absl::StrCat("unary", i, ":")));
  }
  for (int i = 0; i < kPipelines; ++i) {
    pipelines.push_back(std::make_unique<PipelineCaller>(
        &server_, absl::StrCat("pipeline", i, ":")));
  }
  AwaitWork(callers);
  AwaitWork(pipelines);
  const server::DrainReport report = server_.server().Drain(kLongGraceUs);
  EXPECT_TRUE(report.in_time);
  EXPECT_EQ(report.watchers, static_cast<size_t>(kWatchers));
  EXPECT_EQ(report.pipelines, static_cast<size_t>(kPipelines));
  for (auto& caller : callers) caller->Join();
  for (auto& pipeline : pipelines) pipeline->Join();
  for (auto& caller : callers) caller->Check();
  for (auto& pipeline : pipelines) pipeline->Check();
  CheckWatchers(died_us);
}

TEST_F(DrainLoadTest, TellsThatItDrainsWhileItStillServes) {
  const auto describe = [this] {
    return Must(Call(server_.about(), &v1::ServerService::Stub::GetServer,
                     v1::GetServerRequest()));
  };
  EXPECT_FALSE(describe().draining());
  server_.server().SetNotServing();
  EXPECT_TRUE(describe().draining());
  EXPECT_EQ(HealthOf(server_.channel()), 2);
  server_.Put("a", "1");
  WatchReader reader(server_.data(), "default");
  EXPECT_TRUE(reader.Next());
  EXPECT_EQ(describe().watchers().used(), 1u);
  EXPECT_EQ(describe().entries().used(), 1u);
  EXPECT_EQ(describe().namespaces().max(), 1024u);
}

}  // namespace
}  // namespace timecache::test
