#include "timecache/channel.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/support/net/certificates.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(60);

// Answers everything with ABORTED and writes down what calls show.
class Doorman : public grpc::CallbackGenericService {
 public:
  explicit Doorman(std::shared_ptr<grpc::ServerCredentials> credentials =
                       grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~Doorman() override { server_->Shutdown(); }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Reactor : public grpc::ServerGenericBidiReactor {
     public:
      Reactor() { Finish({grpc::StatusCode::ABORTED, "seen"}); }
      void OnDone() override { delete this; }
    };
    absl::MutexLock lock(&mu_);
    const auto [begin, end] =
        context->client_metadata().equal_range("authorization");
    for (auto it = begin; it != end; ++it) {
      shown_.emplace_back(it->second.data(), it->second.size());
    }
    return new Reactor;
  }

  const std::string& address() const { return address_; }
  std::vector<std::string> TakeShown() {
    absl::MutexLock lock(&mu_);
    return std::exchange(shown_, {});
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> shown_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

class ChannelTest : public ::testing::Test {
 protected:
  static void CallOver(const std::shared_ptr<grpc::Channel>& channel) {
    ASSERT_TRUE(
        channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kPatience)));
    EXPECT_TRUE(absl::IsAborted(
        Client(channel, {.timeout = kPatience}).Size().status()));
  }
  static std::shared_ptr<grpc::Channel> Make(const std::string& address,
                                             const ChannelOptions& options) {
    auto channel = MakeChannel(address, options);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return channel.ok() ? *channel : MakeChannel(address);
  }
  static std::string Refusal(const std::string& address,
                             const ChannelOptions& options) {
    return std::string(MakeChannel(address, options).status().message());
  }

  const TemporaryDirectory directory_;
};

TEST_F(ChannelTest, WithoutTokenNothingIsShown) {
  Doorman doorman;
  CallOver(Make(doorman.address(), {}));
  EXPECT_THAT(doorman.TakeShown(), IsEmpty());
}

TEST_F(ChannelTest, TokenIsShownWithEachCallAndFollowsItsFile) {
  Doorman doorman;
  ChannelOptions options;
  options.token_file = directory_.Write("token", "one\n");
  const auto channel = Make(doorman.address(), options);
  CallOver(channel);
  CallOver(channel);
  EXPECT_THAT(doorman.TakeShown(), ElementsAre("Bearer one", "Bearer one"));

  directory_.Write("token", "two");
  CallOver(channel);
  EXPECT_THAT(doorman.TakeShown(), ElementsAre("Bearer two"));

  // A file that is gone, or makes no sense, leaves the last token.
  directory_.Write("token", "no token");
  const absl::Time later = absl::Now() + TokenFile::kInterval * 1.5;
  while (absl::Now() < later) CallOver(channel);
  EXPECT_THAT(doorman.TakeShown(), Each("Bearer two"));
}

TEST_F(ChannelTest, TokenIsShownOverTlsAsWell) {
  const CertificateAuthority authority;
  const Certificate own = authority.Issue();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({own.key, own.certificate});
  Doorman doorman(grpc::SslServerCredentials(tls));
  ChannelOptions options;
  options.ca_file = directory_.Write("ca.crt", authority.certificate());
  options.token_file = directory_.Write("token", "one");
  CallOver(Make(doorman.address(), options));
  EXPECT_THAT(doorman.TakeShown(), ElementsAre("Bearer one"));
}

TEST_F(ChannelTest, TokenDoesNotGoToOtherMachinesInPlainText) {
  ChannelOptions options;
  options.token_file = directory_.Write("token", "one");
  for (const char* address : {"192.0.2.1:1", "host:1", "127.0.0.1.example:1",
                              "localhost.example:1", "dns:///host:1"}) {
    EXPECT_THAT(Refusal(address, options), HasSubstr("is not sent to"))
        << address;
  }
  for (const char* address :
       {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/run/x"}) {
    EXPECT_EQ(Refusal(address, options), "") << address;
  }
  options.allow_plaintext_token = true;
  EXPECT_EQ(Refusal("192.0.2.1:1", options), "");
  options.allow_plaintext_token = false;
  options.tls = true;
  EXPECT_EQ(Refusal("192.0.2.1:1", options), "");
}

TEST_F(ChannelTest, FilesThatMakeNoSenseAreRefused) {
  const std::string absent = directory_.Path("absent");
  const std::string text = directory_.Write("text", "two words");
  ChannelOptions options;
  options.ca_file = absent;
  EXPECT_THAT(Refusal("a:1", options),
              StartsWith("CA file " + absent + ": cannot be read"));
  options.ca_file = text;
  EXPECT_THAT(Refusal("a:1", options),
              AllOf(HasSubstr(text), HasSubstr("is no PEM file")));
  options = {};
  options.key_file = text;
  EXPECT_THAT(Refusal("a:1", options), HasSubstr("name both files"));
  options = {};
  options.tls = true;
  options.token_file = text;
  EXPECT_THAT(Refusal("a:1", options), HasSubstr("must hold one token"));
  EXPECT_THAT(Refusal("a:1", options).find("two words"), std::string::npos);
  options.token_file = absent;
  EXPECT_THAT(Refusal("a:1", options), StartsWith("token file " + absent));
}

}  // namespace
}  // namespace timecache::test
