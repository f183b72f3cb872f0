// How this node shows other nodes who it is.

#ifndef TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_
#define TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_

#include "server/peer/peer_stores.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// By the configuration: with TLS if a listener has it, whose certificate is then this
// node's, and is read again when it changes; with the token of cluster.peer_token_file,
// read for each connection; and with limits.response_timeout for each call.
PeerStores::Options ToPeerOptions(const config::v1::ServerConfig& config);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_PEER_CREDENTIALS_H_
