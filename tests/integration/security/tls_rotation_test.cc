// Certificates, keys and roots are replaced while the server and its clients
// run.
#include <openssl/ssl.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/integration/security/tls_fixture.h"
#include "tests/support/net/tls_handshake.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

CertificateOptions Named(const std::string& name) {
  CertificateOptions options;
  options.common_name = name;
  return options;
}

class TlsRotationTest : public TlsTest {
 protected:
  // Whose certificate a new connection sees.
  std::optional<std::string> Seen() const {
    return ShakeHands(address_, TLS1_2_VERSION);
  }
};

TEST_F(TlsRotationTest, NewConnectionsSeeTheNewCertificate) {
  directory_.Write("server", server_authority_.Issue(Named("one")));
  Serve(config::v1::CLIENT_CERTIFICATE_NONE);
  EXPECT_EQ(Seen(), "one");
  directory_.Write("server", server_authority_.Issue(Named("two")));
  EXPECT_EQ(Seen(), "one");
  watch_.Check();
  EXPECT_EQ(Seen(), "two");
  EXPECT_EQ(listener_->state().subject, "CN=two");
}

TEST_F(TlsRotationTest, NothingFailsUnderLoad) {
  // Trusted by clients: the servers' authority now and the one to come.
  const CertificateAuthority next_authority("servers, next");
  directory_.Write("servers.crt", server_authority_.certificate() +
                                      next_authority.certificate());
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED);
  const ChannelOptions client =
      Showing("client", IssueClient(client_authority_));
  const auto open = Connected(ChannelTo(address_, client));
  const auto stub = v1::TimeCacheService::NewStub(open);
  WatchReader watch(stub.get(), "default");
  ASSERT_TRUE(watch.Next().has_value());

  std::atomic<bool> done = false;
  std::atomic<int> calls = 0;
  std::thread caller([&] {
    while (!done) {
      const grpc::Status status = SizeOver(open);
      ++calls;
      if (!status.ok()) ADD_FAILURE() << status.error_message();
      if (!status.ok()) return;
    }
  });
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) {
    const CertificateAuthority& authority =
        i % 2 == 0 ? next_authority : server_authority_;
    const std::string name = "round " + std::to_string(i);
    const Certificate certificate = authority.Issue(Named(name));
    // A look between the two: what is half done is refused.
    directory_.Write("server.crt", certificate.certificate);
    watch_.Check();
    EXPECT_TRUE(CallWith(client).ok()) << i;
    directory_.Write("server.key", certificate.key);
    watch_.Check();
    EXPECT_EQ(listener_->state().subject, "CN=" + name);
    EXPECT_TRUE(CallWith(client).ok()) << i;
  }
  const int before = calls;
  while (calls < before + 2 && !HasFailure()) std::this_thread::yield();
  done = true;
  caller.join();
  EXPECT_EQ(listener_->state().reloads, 1u + kRounds);
  EXPECT_EQ(listener_->state().refusals, static_cast<uint64_t>(kRounds));

  // The watch is the one of the beginning.
  server_->Put("a", "1");
  server_->AdvanceBy(kTtlUs + kWidthUs);
  EXPECT_THAT(KeysOf(watch.ReadUpTo(DeathUs(kStartUs))),
              ::testing::ElementsAre("a"));
}

TEST_F(TlsRotationTest, ClientsOfTheOldRootsAreRefusedOnNewConnections) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED);
  const ChannelOptions old_client =
      Showing("old", IssueClient(client_authority_));
  const auto open = Connected(ChannelTo(address_, old_client));
  EXPECT_TRUE(SizeOver(open).ok());

  const CertificateAuthority next("clients, next");
  const ChannelOptions new_client = Showing("new", IssueClient(next));
  WhyNot(new_client);
  directory_.Write("clients.crt",
                   client_authority_.certificate() + next.certificate());
  watch_.Check();
  EXPECT_TRUE(CallWith(old_client).ok());
  EXPECT_TRUE(CallWith(new_client).ok());

  directory_.Write("clients.crt", next.certificate());
  watch_.Check();
  WhyNot(old_client);
  EXPECT_TRUE(CallWith(new_client).ok());
  // What is open stays open.
  EXPECT_TRUE(SizeOver(open).ok());
}

// The client looks at its files every kFileCheckIntervalSeconds.
TEST_F(TlsRotationTest, ClientsFilesAreFollowedAsWell) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED);
  const auto channel =
      ChannelTo(address_, Showing("client", IssueClient(server_authority_)));
  EXPECT_FALSE(SizeOver(channel).ok());
  directory_.Write("client", IssueClient(client_authority_));
  EXPECT_TRUE(SizeOver(Connected(channel)).ok());
}

}  // namespace
}  // namespace timecache::test
