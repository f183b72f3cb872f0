// How this node shows other nodes who it is.

#ifndef TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_
#define TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_

#include "absl/status/status.h"
#include "server/peer/peer_stores.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// That the files which ToPeerOptions names can be read, but for those of the listener;
// else what reading ended with.
absl::Status CheckPeerFiles(const config::v1::ServerConfig& config);

// How soon a changed certificate is used.
inline constexpr unsigned kPeerReloadSeconds = 10;

// By the configuration: with TLS if a listener has it, whose certificate is then this
// node's, and is read again each `reload_seconds`, for connections from then on; with
// the token of cluster.peer_token_file, read for each connection; and with
// limits.response_timeout for each call.
PeerStores::Options ToPeerOptions(const config::v1::ServerConfig& config,
                                  unsigned reload_seconds = kPeerReloadSeconds);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_
