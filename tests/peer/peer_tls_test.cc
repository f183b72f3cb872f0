// Nodes that show each other who they are, as the configuration says.

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/edge/access_file.h"
#include "server/edge/tls_listener.h"
#include "server/main/peer_credentials.h"
#include "server/peer/slot_router.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/peer/peer_world.h"
#include "tests/support/await.h"
#include "tests/support/net/certificates.h"
#include "tests/support/rpc.h"
#include "timecache/channel.h"

namespace timecache::test {
namespace {

using server::Operation;
using server::Reason;
using server::ReasonOf;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNode[] = "spiffe://cluster/node";
constexpr char kClient[] = "spiffe://shop/client";

// The owner is at 127.0.0.1, with TLS and with access rules that know node, who may do
// nothing, and client. Of another node there are the files and the configuration:
// node.crt, node.key and roots.crt, which both nodes have in common.
// One slot, which another node serves.
class OwnedElsewhere final : public server::SlotMap {
 public:
  explicit OwnedElsewhere(std::string owner) : owner_(std::move(owner)) {}

  size_t slots() const override { return 1; }
  std::shared_ptr<server::Store> Local(size_t /*slot*/) const override {
    return nullptr;
  }
  bool Serves(size_t /*slot*/, const server::Store& /*store*/) const override {
    return false;
  }
  uint64_t WhenServedNoMore(size_t /*slot*/, const server::Store& /*store*/,
                            std::function<void()> wake) override {
    wake();
    return 0;
  }
  void Forget(size_t /*slot*/, uint64_t /*number*/) override {}
  std::string OwnerAddress(size_t /*slot*/) const override { return owner_; }

 private:
  const std::string owner_;
};

class PeerTlsTest : public ::testing::Test {
 protected:
  PeerTlsTest() {
    directory_.Write("owner", Issue(kNode));
    directory_.Write("node", Issue(kNode));
    directory_.Write("roots.crt", authority_.certificate());
    directory_.Write("token", TokenOf("node") + "\n");
    directory_.Write(
        "access.yaml",
        absl::StrCat("principals:\n", PrincipalLine("node"),
                     "- {name: node-by-certificate, certificate_sans: [\"",
                     kNode, "\"]}\n- {name: client, certificate_sans: [\"",
                     kClient, "\"]}\n", "rules:\n- {principals: [client], ",
                     "namespaces: [\"*\"], verbs: [read, write]}\n"));
    auto access =
        server::AccessFile::Open(directory_.Path("access.yaml"), &watch_);
    EXPECT_TRUE(access.ok()) << access.status();
    access_ = *std::move(access);
    options_.access = access_.get();
    options_.principal = "node-by-certificate";
  }
  ~PeerTlsTest() override { owner_.reset(); }

  // A certificate of a node at 127.0.0.1.
  Certificate Issue(const std::string& name) const {
    return Issue(authority_, name);
  }
  static Certificate Issue(const CertificateAuthority& authority,
                           const std::string& name,
                           const std::string& host = "IP:127.0.0.1") {
    CertificateOptions options;
    options.sans = {host, "URI:" + name};
    return authority.Issue(options);
  }

  // The listener with the certificate NAME.crt.
  config::v1::Listener ListenerOf(const std::string& name) const {
    config::v1::Listener listener;
    listener.set_address("127.0.0.1:0");
    config::v1::TlsConfig& tls = *listener.mutable_tls();
    tls.set_certificate_file(directory_.Path(name + ".crt"));
    tls.set_key_file(directory_.Path(name + ".key"));
    tls.set_client_certificate(client_certificate_);
    if (client_certificate_ != config::v1::CLIENT_CERTIFICATE_NONE) {
      tls.set_client_ca_file(directory_.Path("roots.crt"));
    }
    return listener;
  }
  std::unique_ptr<server::TlsListener> Listen(const std::string& name) {
    auto listener =
        server::TlsListener::Create(ListenerOf(name), &watch_, absl::Hours(1));
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }
  void StartOwner() {
    listener_ = Listen("owner");
    options_.change = [this](server::ServerOptions* to) {
      to->addresses = {"127.0.0.1:0", "127.0.0.1:0"};
      to->credentials = {listener_->credentials(), nullptr};
      to->health_address = "127.0.0.1:0";
    };
    owner_ = std::make_unique<PeerNode>(&clock_, options_);
  }

  // Of the other node.
  config::v1::ServerConfig Config() const {
    config::v1::ServerConfig config = server::DefaultConfig();
    // The first without TLS is not meant.
    config.clear_listeners();
    config.add_listeners()->set_address("127.0.0.1:0");
    *config.add_listeners() = ListenerOf("node");
    return config;
  }
  config::v1::ServerConfig ConfigWithToken() const {
    config::v1::ServerConfig config = Config();
    config.mutable_cluster()->set_peer_token_file(directory_.Path("token"));
    config.mutable_cluster()->set_peer_ca_file(directory_.Path("roots.crt"));
    return config;
  }
  static server::PeerStores::Options PeerOptions(
      const config::v1::ServerConfig& config) {
    return server::ToPeerOptions(config, /*reload_seconds=*/1);
  }

  // What a call of the other node ends with, and what it logs.
  struct Outcome {
    absl::Status status;
    std::string log;
  };
  Outcome Call(const config::v1::ServerConfig& config,
               const std::string& address) const {
    Outcome outcome;
    ::testing::internal::CaptureStderr();
    {
      server::PeerStores peers(PeerOptions(config));
      // On a busy machine a call may end before it is known why.
      EXPECT_TRUE(Await([&] {
        outcome.status =
            Execute(peers.At(address), Operation::Put("k", "v")).status;
        return ReasonOf(outcome.status) != Reason::kNotOwner ||
               absl::StrContains(outcome.status.message(), "this one: ");
      }));
    }
    outcome.log = ::testing::internal::GetCapturedStderr();
    return outcome;
  }
  Outcome Call(const config::v1::ServerConfig& config) const {
    return Call(config, owner_->address());
  }
  // The call was not made, and this is why.
  static void ExpectRefused(const Outcome& outcome, const std::string& event,
                            const std::string& why) {
    EXPECT_EQ(ReasonOf(outcome.status), Reason::kNotOwner) << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()), HasSubstr(why));
    EXPECT_THAT(outcome.log,
                AllOf(HasSubstr(" " + event + " "),
                      HasSubstr(absl::StrReplaceAll(why, {{"\"", "\\\""}}))));
    // Once, however often it was tried.
    EXPECT_EQ(outcome.log.find(event), outcome.log.rfind(event));
  }

  const TemporaryDirectory directory_;
  const CertificateAuthority authority_{"cluster"};
  config::v1::ClientCertificate client_certificate_ =
      config::v1::CLIENT_CERTIFICATE_REQUIRED;
  server::FileWatch watch_;
  std::shared_ptr<server::AccessFile> access_;
  server::ManualClock clock_{kStartUs};
  PeerNode::Options options_;
  std::unique_ptr<server::TlsListener> listener_;
  std::unique_ptr<PeerNode> owner_;
};

TEST_F(PeerTlsTest, ANodeIsKnownByItsListenersCertificate) {
  StartOwner();
  const Outcome outcome = Call(Config());
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(Execute(&owner_->local(), Operation::Get("k")).entry.value, "v");
  EXPECT_THAT(outcome.log, Not(HasSubstr("peer_")));
}

TEST_F(PeerTlsTest, AClientOfAnotherNodeNeedsItsOwnPermissionAlone) {
  StartOwner();
  server::PeerStores peers(PeerOptions(Config()));
  const auto near_listener = Listen("node");
  std::unique_ptr<PeerNode> near;
  PeerNode::Options options = options_;
  OwnedElsewhere slots(owner_->address());
  options.wrap_store = [&](server::Store* /*own*/) {
    return std::make_unique<server::SlotRouter>(
        &slots, &peers, [](const server::Store::DeadLetterRight& /*right*/) {});
  };
  options.change = [&](server::ServerOptions* to) {
    to->credentials = {near_listener->credentials()};
  };
  near = std::make_unique<PeerNode>(&clock_, options);
  const auto put_as = [&](const std::string& san) {
    directory_.Write("client", Issue(san));
    ChannelOptions as;
    as.ca_file = directory_.Path("roots.crt");
    as.certificate_file = directory_.Path("client.crt");
    as.key_file = directory_.Path("client.key");
    auto channel = MakeChannel(near->address(), as);
    EXPECT_TRUE(channel.ok()) << channel.status();
    const auto stub = v1::TimeCacheService::NewStub(Connected(*channel));
    return test::Call(stub.get(), &v1::TimeCacheService::Stub::Put,
                      Proto<v1::PutRequest>(
                          "namespace: 'default' key: 'k' value: 'v'"))
        .status;
  };
  const grpc::Status put = put_as(kClient);
  EXPECT_TRUE(put.ok()) << put.error_message();
  EXPECT_EQ(Execute(&owner_->local(), Operation::Get("k")).entry.value, "v");
  // Nodes may do nothing by themselves.
  ExpectError(put_as(kNode), grpc::StatusCode::PERMISSION_DENIED,
              v1::ACCESS_DENIED);
}

TEST_F(PeerTlsTest, OthersAreToldThatTheyAreNoNodes) {
  StartOwner();
  directory_.Write("node", Issue(kClient));
  ExpectRefused(Call(Config()), "peer_refused",
                "principal \"client\" is not cluster.peer_principal");
  directory_.Write("node", Issue("spiffe://cluster/unknown"));
  ExpectRefused(Call(Config()), "peer_refused", "certificate");
}

TEST_F(PeerTlsTest, WithoutATrustedCertificateThereIsNoConnection) {
  StartOwner();
  const CertificateAuthority stranger("strangers");
  directory_.Write("node", Issue(stranger, kNode));
  ExpectRefused(Call(Config()), "peer_unreached",
                "may not trust this node's certificate");
  config::v1::ServerConfig plain = Config();
  plain.mutable_listeners(1)->clear_tls();
  ExpectRefused(Call(plain), "peer_unreached", "has no TLS");
}

TEST_F(PeerTlsTest, ANodeThatIsNotWhoItShouldBeIsNotCalled) {
  directory_.Write("owner", Issue(authority_, kNode, "DNS:elsewhere"));
  StartOwner();
  ExpectRefused(Call(Config()), "peer_unreached", "Hostname Verification");
  const CertificateAuthority stranger("strangers");
  directory_.Write("strangers.crt", stranger.certificate());
  config::v1::ServerConfig config = Config();
  config.mutable_cluster()->set_peer_ca_file(directory_.Path("strangers.crt"));
  ExpectRefused(Call(config), "peer_unreached", "certificate verify failed");
}

TEST_F(PeerTlsTest, ANewCertificateIsUsedForTheNextConnection) {
  StartOwner();
  directory_.Write("node", Issue(kClient));
  server::PeerStores peers(PeerOptions(Config()));
  server::Store* const store = peers.At(owner_->address());
  EXPECT_EQ(ReasonOf(Execute(store, Operation::Get("k")).status),
            Reason::kNotOwner);
  directory_.Write("node", Issue(kNode));
  EXPECT_TRUE(
      Await([&] { return Execute(store, Operation::Get("k")).status.ok(); }));
}

TEST_F(PeerTlsTest, ANodeIsKnownByItsToken) {
  client_certificate_ = config::v1::CLIENT_CERTIFICATE_NONE;
  options_.principal = "node";
  StartOwner();
  const config::v1::ServerConfig config = ConfigWithToken();
  const Outcome good = Call(config);
  EXPECT_TRUE(good.status.ok()) << good.status;

  directory_.Write("token", "another");
  server::PeerStores peers(PeerOptions(config));
  server::Store* const store = peers.At(owner_->address());
  EXPECT_EQ(ReasonOf(Execute(store, Operation::Get("k")).status),
            Reason::kNotOwner);
  ExpectRefused(Call(config), "peer_refused", "token");
  std::filesystem::remove(directory_.Path("token"));
  const Outcome none = Call(config);
  ExpectRefused(none, "peer_refused", "no credentials");
  EXPECT_THAT(none.log, HasSubstr("peer_token_unread"));
  // It is read again for each connection.
  directory_.Write("token", TokenOf("node"));
  EXPECT_TRUE(
      Await([&] { return Execute(store, Operation::Get("k")).status.ok(); }));
}

TEST_F(PeerTlsTest, FilesThatCannotBeReadAreFoundAtTheStart) {
  config::v1::ServerConfig config = ConfigWithToken();
  EXPECT_TRUE(server::CheckPeerFiles(config).ok());
  std::filesystem::remove(directory_.Path("roots.crt"));
  EXPECT_THAT(std::string(server::CheckPeerFiles(config).message()),
              HasSubstr("cluster.peer_ca_file: "));
  config.mutable_cluster()->set_peer_token_file(directory_.Path("none"));
  EXPECT_THAT(std::string(server::CheckPeerFiles(config).message()),
              HasSubstr("cluster.peer_token_file: "));
}

TEST_F(PeerTlsTest, APlainListenerKnowsNodesByTheirTokenAlone) {
  options_.principal = "node";
  StartOwner();
  const std::string plain = owner_->server().addresses().at(1);
  config::v1::ServerConfig config = ConfigWithToken();
  config.mutable_listeners(1)->clear_tls();
  const Outcome good = Call(config, plain);
  EXPECT_TRUE(good.status.ok()) << good.status;
  config.mutable_cluster()->clear_peer_token_file();
  ExpectRefused(Call(config, plain), "peer_refused", "no credentials");

  const auto health = grpc::health::v1::Health::NewStub(grpc::CreateChannel(
      owner_->server().health_address(), grpc::InsecureChannelCredentials()));
  EXPECT_TRUE(test::Call(health.get(), &grpc::health::v1::Health::Stub::Check,
                         grpc::health::v1::HealthCheckRequest())
                  .status.ok());
}

}  // namespace
}  // namespace timecache::test
