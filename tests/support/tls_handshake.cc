#include "tests/support/tls_handshake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace timecache::test {
namespace {

constexpr timeval kPatience = {60, 0};

int Connect(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

}  // namespace

std::optional<std::string> ShakeHands(const std::string& address, int newest) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  // Else OpenSSL itself does not offer what is too old.
  SSL_CTX_set_security_level(context.get(), 0);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context.get(), newest);
  constexpr std::array<unsigned char, 3> kAlpn = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kAlpn.data(), kAlpn.size());
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()),
                                                      &SSL_free);
  const int fd = Connect(address);
  SSL_set_fd(ssl.get(), fd);
  std::optional<std::string> name;
  if (SSL_connect(ssl.get()) == 1) {
    X509* const certificate = SSL_get0_peer_certificate(ssl.get());
    std::array<char, 256> text = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                              NID_commonName, text.data(), text.size());
    name = text.data();
  }
  close(fd);
  return name;
}

}  // namespace timecache::test
