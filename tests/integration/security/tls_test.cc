// Who may connect to a listener with TLS, and what the others are told.
#include <openssl/ssl.h>

#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "tests/integration/security/tls_fixture.h"
#include "tests/support/net/tls_handshake.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;

TEST_F(TlsTest, ClientWithAnotherRootRefusesTheServer) {
  Serve(config::v1::CLIENT_CERTIFICATE_NONE);
  ChannelOptions options;
  options.ca_file = directory_.Path("clients.crt");
  EXPECT_THAT(WhyNot(options), HasSubstr("certificate verify failed"));
}

TEST_F(TlsTest, ClientAsksForTheNameThatItKnows) {
  directory_.Write("server", server_authority_.Issue(
                                 CertificateOptions::Client("cache.example")));
  Serve(config::v1::CLIENT_CERTIFICATE_NONE);
  // The address's host is 127.0.0.1.
  EXPECT_THAT(WhyNot(Trusting()), HasSubstr("Hostname Verification"));
  ChannelOptions options = Trusting();
  options.server_name = "cache.example";
  EXPECT_TRUE(CallWith(options).ok());
}

TEST_F(TlsTest, RequiredCertificateIsOneOfTheClientRoots) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED);
  EXPECT_TRUE(CallWith(Showing("client", IssueClient(client_authority_))).ok());
  WhyNot(Trusting());
  WhyNot(Showing("stranger", IssueClient(server_authority_)));
  WhyNot(Showing(
      "expired",
      client_authority_.Issue(CertificateOptions::Client("client").Expired())));
}

TEST_F(TlsTest, OptionalCertificateIsCheckedIfThereIsOne) {
  Serve(config::v1::CLIENT_CERTIFICATE_OPTIONAL);
  EXPECT_TRUE(CallWith(Trusting()).ok());
  EXPECT_TRUE(CallWith(Showing("client", IssueClient(client_authority_))).ok());
  WhyNot(Showing("stranger", IssueClient(server_authority_)));
}

// A resumed session would bring the certificate that was checked when it began.
TEST_F(TlsTest, NoSessionIsResumed) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED);
  const ChannelOptions client =
      Showing("client", IssueClient(client_authority_));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_FALSE(ResumesSession(address_, version, client.certificate_file,
                                client.key_file))
        << version;
  }
}

TEST_F(TlsTest, PlainTextAndTlsDoNotUnderstandEachOther) {
  Serve(config::v1::CLIENT_CERTIFICATE_NONE);
  WhyNot(ChannelOptions());
  EXPECT_THAT(WhyNot(server_->server().addresses().at(0), Trusting()),
              HasSubstr("wrong version number"));
  // And nobody is worse off.
  EXPECT_TRUE(CallWith(Trusting()).ok());
}

TEST_F(TlsTest, NothingOlderThanTls12IsSpoken) {
  Serve(config::v1::CLIENT_CERTIFICATE_NONE);
  EXPECT_EQ(ShakeHands(address_, TLS1_VERSION), std::nullopt);
  EXPECT_EQ(ShakeHands(address_, TLS1_1_VERSION), std::nullopt);
  EXPECT_EQ(ShakeHands(address_, TLS1_2_VERSION), "timecached");
  EXPECT_EQ(ShakeHands(address_, TLS1_3_VERSION), "timecached");
}

TEST_F(TlsTest, HealthPortAnswersProbesWithoutACertificate) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED, "127.0.0.1:0");
  const std::string address = server_->server().health_address();
  const auto channel = Connected(ChannelTo(address, ChannelOptions()));
  EXPECT_EQ(HealthOf(channel), 1);
  // And nothing else.
  EXPECT_EQ(SizeOver(channel).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Call(v1::NamespaceService::NewStub(channel).get(),
                 &v1::NamespaceService::Stub::ListNamespaces,
                 v1::ListNamespacesRequest())
                .status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(
      CallRaw(channel,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              "\x3a\x01*"),
      "");

  server_->server().SetNotServing();
  EXPECT_EQ(HealthOf(channel), 2);
  EXPECT_EQ(HealthOf(server_->channel()), 2);
}

TEST_F(TlsTest, WatchOnTheHealthPortSeesTheDrain) {
  Serve(config::v1::CLIENT_CERTIFICATE_NONE, "127.0.0.1:0");
  const auto channel = Connected(
      ChannelTo(server_->server().health_address(), ChannelOptions()));
  RawStream health(channel, "/grpc.health.v1.Health/Watch", "");
  EXPECT_EQ(health.Next(), "\x08\x01");
  // With a stream open, the drain takes a second.
  WatchReader watch(server_->data(), "default");
  ASSERT_TRUE(watch.Next().has_value());
  std::thread drain(
      [this] { server_->server().Drain(60 * server::kMicrosPerSecond); });
  EXPECT_EQ(health.Next(), "\x08\x02");
  EXPECT_EQ(health.Next(), std::nullopt);
  EXPECT_TRUE(watch.Drain().ok());
  drain.join();
}

}  // namespace
}  // namespace timecache::test
