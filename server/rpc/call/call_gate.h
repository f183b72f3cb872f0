// The checks before every call.

#ifndef TIMECACHED_SERVER_RPC_CALL_CALL_GATE_H_
#define TIMECACHED_SERVER_RPC_CALL_CALL_GATE_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/api/access.h"
#include "server/api/call_observer.h"
#include "server/api/method.h"
#include "server/edge/connection/peer_guard.h"
#include "server/edge/response/response_ledger.h"

namespace timecache::server {

// The rules and the observers of calls. Every handler first creates a Call
// (call.h) from it. Thread-safe.
class CallGate {
 public:
  // None is owned; all must outlive the gate and its calls. `access` null:
  // there are no rules, and every caller has all permissions. `guard` null:
  // calls are served even if their connection is gone. `responses` null:
  // responses are not counted; otherwise the services' unary calls are
  // CountedCalls. `service`, of a node of a cluster: an error while it does not
  // serve, called for each call and each message of a stream; empty: it serves.
  CallGate(const Access* access, std::vector<CallObserver*> observers,
           PeerGuard* guard = nullptr, ResponseLedger* responses = nullptr,
           std::function<absl::Status()> service = nullptr)
      : access_(access),
        observers_(std::move(observers)),
        guard_(guard),
        responses_(responses),
        service_(std::move(service)) {}

  const Access* access() const { return access_; }
  const std::vector<CallObserver*>& observers() const { return observers_; }

  PeerGuard* guard() const { return guard_; }
  // The account of the connection that a call came on.
  ResponseAccountRef AccountOf(const std::string& peer) const {
    return responses_ == nullptr ? ResponseAccountRef()
                                 : responses_->Find(peer);
  }

  bool checks_service() const { return service_ != nullptr; }
  // UNAVAILABLE (NOT_OWNER), with the owner's address if there is one, while
  // another node serves.
  absl::Status CheckService() const {
    return service_ ? service_() : absl::OkStatus();
  }

  // Refuses calls from now on: UNAVAILABLE (DRAINING), or of a node of a cluster
  // that does not serve as CheckService.
  void Close() { closed_.store(true, std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  const Access* const access_;
  const std::vector<CallObserver*> observers_;
  PeerGuard* const guard_;
  ResponseLedger* const responses_;
  const std::function<absl::Status()> service_;
  std::atomic<bool> closed_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_CALL_GATE_H_
