// What becomes of streams whose caller may not, or may no more.
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/support/delayed_store.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;

constexpr char kReflection[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// WatchExpired, as `who`.
class Watch {
 public:
  Watch(const std::string& who, v1::TimeCacheService::Stub* stub,
        const std::string& request = "namespaces: 'default'") {
    SignAs(who, &context_);
    reader_ =
        stub->WatchExpired(&context_, Proto<v1::WatchExpiredRequest>(request));
  }
  // Waits for the first message, with which the watch stands.
  void AwaitStart() {
    v1::WatchExpiredResponse message;
    EXPECT_TRUE(reader_->Read(&message));
  }
  grpc::Status Drain() {
    v1::WatchExpiredResponse message;
    while (reader_->Read(&message)) {
    }
    return reader_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchExpiredResponse>> reader_;
};

class SignedPipeline {
 public:
  SignedPipeline(const std::string& who, v1::TimeCacheService::Stub* stub) {
    SignAs(who, &context_);
    stream_ = stub->Pipeline(&context_);
  }

  // The codes of the batch's operations; the stream's if it ended.
  std::vector<int> Run(const std::string& batch) {
    return Send(batch) ? Receive() : std::vector<int>();
  }
  bool Send(const std::string& batch) {
    return stream_->Write(Proto<v1::ExecuteRequest>(batch));
  }
  std::vector<int> Receive() {
    v1::ExecuteResponse response;
    std::vector<int> codes;
    if (!stream_->Read(&response)) return codes;
    for (const auto& result : response.results()) {
      codes.push_back(result.error().code());
    }
    return codes;
  }
  grpc::Status Drain() {
    v1::ExecuteResponse response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ExecuteRequest, v1::ExecuteResponse>>
      stream_;
};

using AccessStreamTest = AccessTest;

constexpr char kPutAndGet[] =
    "namespace: 'default' operations { put { key: 'a' } } "
    "operations { get { key: 'a' } }";
constexpr int kDenied = grpc::StatusCode::PERMISSION_DENIED;

TEST_F(AccessStreamTest, AnIdleWatchEndsWithItsRight) {
  const std::string idle =
      "namespaces: 'default' heartbeat_interval { seconds: 3600 }";
  Watch watcher("watcher", data(), idle);
  Watch admin("admin", data(), idle);
  watcher.AwaitStart();
  admin.AwaitStart();
  // Nobody has the token any more.
  SetRules("watcher");
  ExpectUnknown(watcher.Drain(), v1::UNKNOWN_TOKEN);
  // Another's right is its own, and a change of rules tells its watermark.
  admin.AwaitStart();
}

TEST_F(AccessStreamTest, AWatchThatLosesItsRightAloneIsDenied) {
  Watch worker("worker", data());
  worker.AwaitStart();
  directory_.Write("access.yaml", "principals:\n" + PrincipalLine("worker") +
                                      "rules:\n" +
                                      Rule("worker", "read, settle"));
  watch_.Check();
  ExpectDenied(worker.Drain(), "watch");
}

TEST_F(AccessStreamTest, APipelineGoesOnWithWhatItsCallerMayDo) {
  SignedPipeline pipeline("reader", data());
  EXPECT_THAT(pipeline.Run(kPutAndGet), ElementsAre(kDenied, 0));
  SetRules("", Rule("reader", "write"));
  EXPECT_THAT(pipeline.Run(kPutAndGet), ElementsAre(0, 0));
  SetRules();
  EXPECT_THAT(pipeline.Run(kPutAndGet), ElementsAre(kDenied, 0));
  // A batch for a namespace in which it may do nothing ends it.
  EXPECT_THAT(
      pipeline.Run("namespace: 'other' operations { get { key: 'a' } }"),
      ElementsAre());
  ExpectDenied(pipeline.Drain(), "", "other");
}

// Of plain calls: those of other namespaces go on.
TEST_F(AccessStreamTest, APipelineOfIndependentRequestsGoesOnWithoutARight) {
  SignedPipeline pipeline("reader", data());
  EXPECT_THAT(pipeline.Run("namespace: 'other' independent: true operations { "
                           "get { key: 'a' } } operations { put {} }"),
              ElementsAre(kDenied, kDenied));
  EXPECT_THAT(pipeline.Run(absl::StrCat("independent: true ", kPutAndGet)),
              ElementsAre(kDenied, 0));
  directory_.Write("access.yaml", "principals:\n" + PrincipalLine("reader") +
                                      "rules:\n" +
                                      Rule("reader", "read", "another"));
  watch_.Check();
  EXPECT_THAT(pipeline.Run(absl::StrCat("independent: true ", kPutAndGet)),
              ElementsAre(kDenied, kDenied));
  SetRules("reader");
  ExpectUnknown(pipeline.Drain(), v1::UNKNOWN_TOKEN);
}

// What is read while others wait to be stored is checked once they are answered.
TEST_F(AccessStreamTest, APipelineWithAnswersToComeGoesByTheNewRules) {
  DelayedStore* store = nullptr;
  TestServerOptions options;
  options.access = access_.get();
  options.wrap_store = [&](server::Store* wrapped) {
    auto delayed = std::make_unique<DelayedStore>(wrapped);
    store = delayed.get();
    return delayed;
  };
  TestServer server(options);
  store->HoldAnswers();
  SignedPipeline pipeline("writer", server.data());
  const std::string put = "namespace: 'default' operations { put { key: '";
  EXPECT_TRUE(pipeline.Send(put + "a' } }"));
  store->AwaitAnswers(1);
  SetRules("writer");
  EXPECT_TRUE(pipeline.Send(put + "b' } }"));
  EXPECT_TRUE(pipeline.Send(put + "c' } }"));
  store->ReleaseAnswers();
  EXPECT_THAT(pipeline.Receive(), ElementsAre(0));
  ExpectUnknown(pipeline.Drain(), v1::UNKNOWN_TOKEN);
}

TEST_F(AccessStreamTest, AnIdlePipelineEndsWithItsPrincipal) {
  SignedPipeline pipeline("reader", data());
  EXPECT_THAT(pipeline.Run(kPutAndGet), ElementsAre(kDenied, 0));
  SetRules("reader");
  ExpectUnknown(pipeline.Drain(), v1::UNKNOWN_TOKEN);
}

TEST_F(AccessStreamTest, AnIdlePipelineEndsWithItsLastRight) {
  SignedPipeline pipeline("reader", data());
  EXPECT_THAT(pipeline.Run(kPutAndGet), ElementsAre(kDenied, 0));
  directory_.Write("access.yaml", "principals:\n" + PrincipalLine("reader") +
                                      "rules:\n" +
                                      Rule("reader", "read", "another"));
  watch_.Check();
  ExpectDenied(pipeline.Drain(), "");
}

TEST_F(AccessStreamTest, AScanEndsWithItsRight) {
  // Far more than is under way to a client that does not read.
  server_->Fill(3'000, "k", std::string(10'000, 'x'));
  grpc::ClientContext context;
  SignAs("reader", &context);
  const auto reader =
      data()->Scan(&context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(reader->Read(&page));
  SetRules("reader");
  int entries = page.entries_size();
  while (reader->Read(&page)) entries += page.entries_size();
  ExpectUnknown(reader->Finish(), v1::UNKNOWN_TOKEN);
  EXPECT_LT(entries, 3'000);
}

TEST_F(AccessStreamTest, ReflectionIsOffWhereThereAreRules) {
  EXPECT_EQ(CallRaw(server_->channel(), kReflection, "\x3a\x01*"), "");
}

}  // namespace
}  // namespace timecache::test
