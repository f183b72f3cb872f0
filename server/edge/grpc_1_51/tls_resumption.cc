#include "server/edge/grpc_1_51/tls_resumption.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include "server/base/check.h"

namespace timecache::server {
namespace {

// OpenSSL calls these for each object that it creates, for any caller.

// A session cache would hold sessions with an id (TLS 1.2) and stateful tickets
// (1.3).
void OnNewContext(void* context, void* /*data*/, CRYPTO_EX_DATA* /*to*/,
                  int /*index*/, long /*argl*/, void* /*argp*/) {  // NOLINT
  SSL_CTX_set_session_cache_mode(static_cast<SSL_CTX*>(context),
                                 SSL_SESS_CACHE_OFF);
}

// SSL_CTX_new sets the number of tickets after it has called OnNewContext; a
// connection takes it over before this is called.
void OnNewConnection(void* connection, void* /*data*/, CRYPTO_EX_DATA* /*to*/,
                     int /*index*/, long /*argl*/, void* /*argp*/) {  // NOLINT
  SSL* const ssl = static_cast<SSL*>(connection);
  SSL_set_options(ssl, SSL_OP_NO_TICKET);
  SSL_set_num_tickets(ssl, 0);
}

}  // namespace

void DisableTlsResumption() {
  static const bool done = [] {
    // Before there is an object that the indexes do not count for.
    OPENSSL_init_ssl(0, nullptr);
    TIMECACHED_CHECK(SSL_CTX_get_ex_new_index(0, nullptr, OnNewContext, nullptr,
                                              nullptr) >= 0);
    TIMECACHED_CHECK(SSL_get_ex_new_index(0, nullptr, OnNewConnection, nullptr,
                                          nullptr) >= 0);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace timecache::server
