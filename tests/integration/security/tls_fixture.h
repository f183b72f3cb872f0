// A server that speaks TLS beside its plain port, and clients of it.

#ifndef TIMECACHED_TESTS_INTEGRATION_SECURITY_TLS_FIXTURE_H_
#define TIMECACHED_TESTS_INTEGRATION_SECURITY_TLS_FIXTURE_H_

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/edge/file_watch.h"
#include "server/edge/tls_listener.h"
#include "tests/support/net/certificates.h"
#include "tests/support/rpc.h"
#include "tests/support/test_server.h"
#include "timecache/channel.h"

namespace timecache::test {

// Files are in directory_: server.crt, server.key (of server_authority_),
// clients.crt (client_authority_'s root), servers.crt (server_authority_'s).
class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    directory_.Write("server", server_authority_.Issue());
    directory_.Write("servers.crt", server_authority_.certificate());
    directory_.Write("clients.crt", client_authority_.certificate());
  }

  // Only Check looks at the files.
  void Serve(config::v1::ClientCertificate client_certificate,
             const std::string& health_address = "",
             server::Access* access = nullptr) {
    config::v1::Listener config;
    config.set_address("127.0.0.1:0");
    config::v1::TlsConfig& tls = *config.mutable_tls();
    tls.set_certificate_file(directory_.Path("server.crt"));
    tls.set_key_file(directory_.Path("server.key"));
    tls.set_client_certificate(client_certificate);
    if (client_certificate != config::v1::CLIENT_CERTIFICATE_NONE) {
      tls.set_client_ca_file(directory_.Path("clients.crt"));
    }
    auto listener =
        server::TlsListener::Create(config, &watch_, absl::Hours(1));
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    TestServerOptions options;
    options.access = access;
    options.change = [&](server::ServerOptions* to) {
      to->addresses.push_back(config.address());
      to->credentials = {nullptr, listener_->credentials()};
      to->health_address = health_address;
    };
    server_ = std::make_unique<TestServer>(options);
    address_ = server_->server().addresses().at(1);
  }

  // What a client needs that shows no certificate.
  ChannelOptions Trusting() const {
    ChannelOptions options;
    options.ca_file = directory_.Path("servers.crt");
    return options;
  }
  // What one needs that shows this one, kept in NAME.crt and NAME.key.
  ChannelOptions Showing(const std::string& name,
                         const Certificate& certificate) const {
    directory_.Write(name, certificate);
    ChannelOptions options = Trusting();
    options.certificate_file = directory_.Path(name + ".crt");
    options.key_file = directory_.Path(name + ".key");
    return options;
  }

  static Certificate IssueClient(const CertificateAuthority& authority) {
    return authority.Issue(CertificateOptions::Client("client"));
  }

  // A connection of its own.
  static std::shared_ptr<grpc::Channel> ChannelTo(
      const std::string& address, const ChannelOptions& options) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel = MakeChannel(address, options, arguments);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return channel.ok() ? *channel : MakeChannel(address);
  }

  // Of a call over a new connection that is expected to come about.
  grpc::Status CallWith(const ChannelOptions& options) const {
    return SizeOver(Connected(ChannelTo(address_, options)));
  }
  // Why the server cannot be called.
  static std::string WhyNot(const std::string& address,
                            const ChannelOptions& options) {
    const grpc::Status status = SizeOver(ChannelTo(address, options));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
        << status.error_message();
    return status.error_message();
  }
  std::string WhyNot(const ChannelOptions& options) const {
    return WhyNot(address_, options);
  }

  static grpc::Status SizeOver(const std::shared_ptr<grpc::Channel>& channel) {
    v1::SizeRequest request;
    request.set_namespace_("default");
    return Call(v1::TimeCacheService::NewStub(channel).get(),
                &v1::TimeCacheService::Stub::Size, request)
        .status;
  }

  const TemporaryDirectory directory_;
  const CertificateAuthority server_authority_{"servers"};
  const CertificateAuthority client_authority_{"clients"};
  server::FileWatch watch_;
  std::unique_ptr<server::TlsListener> listener_;
  std::unique_ptr<TestServer> server_;
  std::string address_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_INTEGRATION_SECURITY_TLS_FIXTURE_H_
