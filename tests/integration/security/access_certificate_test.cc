// Principals who are known by their certificate.
#include <string>

#include "server/base/reason.h"
#include "server/edge/access_file.h"
#include "tests/integration/security/tls_fixture.h"

namespace timecache::test {
namespace {

class AccessCertificateTest : public TlsTest {
 protected:
  AccessCertificateTest() {
    auto file = server::AccessFile::Open(
        directory_.Write(
            "access.yaml",
            "principals:\n"
            "- {name: basket, certificate_sans: [\"spiffe://shop/basket\"]}\n"
            "- {name: audit, certificate_sans: [audit@shop.example]}\n"
            "- {name: host, certificate_sans: [10.0.0.7, basket.shop,"
            " '2001:DB8:0::7']}\n"
            // Of "token".
            "- {name: token, token_sha256: [3c469e9d6c5875d37a43f353d4f88e61fc"
            "f812c66eee3457465a40b0da4153e0]}\n"
            "rules:\n"
            "- {principals: [\"*\"], namespaces: [default], verbs: [read]}\n"
            "- {principals: [token], namespaces: [default], verbs: [write]}\n"),
        &watch_);
    EXPECT_TRUE(file.ok()) << file.status();
    access_ = *std::move(file);
  }

  // Of a call that the holder of a certificate with this name makes, in a
  // namespace where nobody may do anything: the error says who it was.
  std::string WhoIs(const std::string& san, const std::string& token = "") {
    CertificateOptions options = CertificateOptions::Client("client");
    if (!san.empty()) options.sans = {san};
    const auto channel = Connected(ChannelTo(
        address_, san.empty()
                      ? Trusting()
                      : Showing("client", client_authority_.Issue(options))));
    grpc::ClientContext context;
    SetDeadline(&context);
    if (!token.empty()) {
      context.AddMetadata("authorization", "Bearer " + token);
    }
    v1::SizeRequest request;
    request.set_namespace_("other");
    v1::SizeResponse response;
    const grpc::Status status = v1::TimeCacheService::NewStub(channel)->Size(
        &context, request, &response);
    const ErrorParts parts = PartsOf(status);
    return parts.code == grpc::StatusCode::PERMISSION_DENIED
               ? parts.metadata.at("principal")
               : v1::ErrorReason_Name(parts.reason);
  }

  std::shared_ptr<server::AccessFile> access_;
};

TEST_F(AccessCertificateTest, EveryKindOfNameIsKnown) {
  Serve(config::v1::CLIENT_CERTIFICATE_REQUIRED, "", access_.get());
  EXPECT_EQ(WhoIs("URI:spiffe://shop/basket"), "basket");
  EXPECT_EQ(WhoIs("email:audit@shop.example"), "audit");
  EXPECT_EQ(WhoIs("IP:10.0.0.7"), "host");
  EXPECT_EQ(WhoIs("IP:2001:db8::7"), "host");
  EXPECT_EQ(WhoIs("DNS:basket.shop"), "host");
  EXPECT_EQ(WhoIs("URI:spiffe://shop/basket/2"),
            server::ReasonName(server::Reason::kUnknownCertificate));
}

}  // namespace
}  // namespace timecache::test
