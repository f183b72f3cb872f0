#include "tests/support/net/tls_handshake.h"

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

// A handshake and the server's first bytes, which come after its tickets. Puts
// the session into `*session`, from which it begins unless that is null.
bool Greet(SSL_CTX* context, const std::string& address,
           std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)>* session) {
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context),
                                                      &SSL_free);
  // The server under test may be in this process, and have switched it off.
  SSL_clear_options(ssl.get(), SSL_OP_NO_TICKET);
  const int fd = Connect(address);
  SSL_set_fd(ssl.get(), fd);
  if (*session != nullptr) SSL_set_session(ssl.get(), session->get());
  EXPECT_EQ(SSL_connect(ssl.get()), 1);
  char byte = 0;
  EXPECT_EQ(SSL_read(ssl.get(), &byte, 1), 1);
  const bool resumed = SSL_session_reused(ssl.get()) == 1;
  session->reset(SSL_get1_session(ssl.get()));
  SSL_shutdown(ssl.get());
  close(fd);
  return resumed;
}

}  // namespace

bool ResumesSession(const std::string& address, int version,
                    const std::string& certificate_file,
                    const std::string& key_file) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT);
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  constexpr std::array<unsigned char, 3> kAlpn = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kAlpn.data(), kAlpn.size());
  EXPECT_EQ(SSL_CTX_use_certificate_file(
                context.get(), certificate_file.c_str(), SSL_FILETYPE_PEM),
            1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(),
                                        SSL_FILETYPE_PEM),
            1);
  std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)> session(
      nullptr, &SSL_SESSION_free);
  EXPECT_FALSE(Greet(context.get(), address, &session));
  return Greet(context.get(), address, &session);
}

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
