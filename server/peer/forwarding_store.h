// Has whoever owns do what a node is asked.

#ifndef TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_
#define TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/passing_store.h"
#include "server/peer/peer_stores.h"

namespace timecache::server {

// While this node owns, its own store; otherwise the one of the node that does. What
// is asked goes on there, whatever comes between: a call that was not applied because
// another node owns now is made there, kMaxTries times at most, kLookAgain apart; then
// it ends with NOT_OWNER.
//
// A reader stays with the node that it was opened at, and ends with it. GetUsage and
// SetDeadLetterRight are this node's.
//
// Thread-safe. Costs a question for the owner for each call, and where it is another
// node what PeerStore costs.
class ForwardingStore final : public PassingStore {
 public:
  static constexpr int kMaxTries = 10;
  static constexpr std::chrono::milliseconds kLookAgain{50};

  // OK while this node owns; else UNAVAILABLE (NOT_OWNER), with the metadata
  // owner_address if another node does.
  using CheckService = std::function<absl::Status()>;

  // None is owned; all must outlive this. `own_address`: where other nodes reach this
  // one, which does not call itself.
  ForwardingStore(Store* own, PeerStores* peers, CheckService check_service,
                  std::string own_address)
      : own_(*own),
        peers_(*peers),
        check_service_(std::move(check_service)),
        own_address_(std::move(own_address)) {}

  using Store::Execute;
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, BatchProgress* progress,
               Done done) override;

  StoreUsage GetUsage() const override { return own_.GetUsage(); }
  void SetDeadLetterRight(DeadLetterRight right) override {
    own_.SetDeadLetterRight(std::move(right));
  }

 private:
  Choice AtOnce(const About& about) override;
  void Next(std::shared_ptr<Call> call) override;
  bool Again(const std::shared_ptr<Call>& call,
             const absl::Status& error) override;
  // `error`: how it ends unless it is tried again.
  void TryLater(std::shared_ptr<Call> call, const absl::Status& error);

  Store& own_;
  PeerStores& peers_;
  const CheckService check_service_;
  const std::string own_address_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_FORWARDING_STORE_H_
