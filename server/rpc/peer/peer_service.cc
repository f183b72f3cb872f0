#include "server/rpc/peer/peer_service.h"

#include <utility>

namespace timecache::server {

PeerService::PeerService(const CallGate* gate, PeerStream::Parts parts)
    : RawService(/*counted=*/nullptr), parts_(std::move(parts)) {
  Serve<BidiHandler>(methods::kExchange, [this, gate](Context* context) {
    return PeerStream::Start(*gate, context, &parts_);
  });
}

}  // namespace timecache::server
