// timecache.peer.v1.PeerService: other nodes of the cluster call this one.

#ifndef TIMECACHED_SERVER_RPC_PEER_PEER_SERVICE_H_
#define TIMECACHED_SERVER_RPC_PEER_PEER_SERVICE_H_

#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/peer/peer_stream.h"
#include "timecache/peer/v1/peer.grpc.pb.h"

namespace timecache::server {

// Thread-safe.
class PeerService final : public RawService<peer::v1::PeerService::Service> {
 public:
  // Not owned, nor what `parts` names; all must outlive the service and its streams.
  PeerService(const CallGate* gate, PeerStream::Parts parts);

 private:
  const PeerStream::Parts parts_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_PEER_PEER_SERVICE_H_
