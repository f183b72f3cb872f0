// Works around gRPC 1.51, whose servers resume TLS sessions and whose
// credentials give no access to the SSL_CTX that could disable it. Can go with
// a version whose server credentials have a switch for it.

#ifndef TIMECACHED_SERVER_EDGE_GRPC_1_51_TLS_RESUMPTION_H_
#define TIMECACHED_SERVER_EDGE_GRPC_1_51_TLS_RESUMPTION_H_

namespace timecache::server {

// From now on no TLS server of this process resumes a session, by ticket or by
// session id, in TLS 1.2 or 1.3: each connection is a full handshake, which
// checks the client's certificate against its dates and the roots in force. A
// resumed session would use the certificate that was checked when the session
// started. Applies to SSL_CTX objects created after the first call.
// Thread-safe.
void DisableTlsResumption();

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_GRPC_1_51_TLS_RESUMPTION_H_
