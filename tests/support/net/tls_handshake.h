// A TLS handshake without gRPC.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_TLS_HANDSHAKE_H_
#define TIMECACHED_TESTS_SUPPORT_NET_TLS_HANDSHAKE_H_

#include <optional>
#include <string>

namespace timecache::test {

// Shakes hands with a server at 127.0.0.1:PORT in at most the version `newest`
// (TLS1_1_VERSION ...), trusting anybody. Returns the common name of the
// server's certificate; nothing if there was no handshake. Takes at most a
// minute.
std::optional<std::string> ShakeHands(const std::string& address, int newest);

// Whether a second connection in this version resumes the session of a first
// one, both with the client's certificate and key in these PEM files. Fails the
// test if there is no handshake.
bool ResumesSession(const std::string& address, int version,
                    const std::string& certificate_file,
                    const std::string& key_file);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_NET_TLS_HANDSHAKE_H_
