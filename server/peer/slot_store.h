// Has the node that serves a slot do what is asked of it.

#ifndef TIMECACHED_SERVER_PEER_SLOT_STORE_H_
#define TIMECACHED_SERVER_PEER_SLOT_STORE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/store/store.h"
#include "server/peer/passing_store.h"
#include "server/peer/peer_stores.h"
#include "server/peer/slot_map.h"

namespace timecache::server {

// Each call goes to the node that serves the slot which the name is in, this one or
// another. One that was not applied because that has changed, or of whose slot no owner
// is known, is made again, kMaxTries times at most, kLookAgain apart, and none that began
// a second ago; then it ends with UNAVAILABLE (NOT_OWNER). A batch of which some turns were taken here, before another
// node served the slot, ends with OWNERSHIP_LOST.
//
// Readers of several slots are opened at each, all of them or none, and end when their
// slots are served no more: see slot_reader.h.
//
// Without `peers` no other node is asked: what this one does not serve ends with
// NOT_OWNER at once. So the calls of other nodes are answered.
//
// Thread-safe. A call costs SlotMap::Local, and an allocation that keeps the slot's maps
// until it is done; where another node serves them what PeerStore costs.
class SlotStore : public PassingStore {
 public:
  static constexpr int kMaxTries = 10;
  static constexpr std::chrono::milliseconds kLookAgain{50};

  using Store::Execute;
  void Execute(absl::string_view name, absl::Span<const Operation> operations,
               absl::Span<Result> results, BatchProgress* progress,
               Done done) override;
  void OpenLogs(absl::Span<const std::string> names, LogStart start,
                const LogPoints& points, Wake wake,
                DoneWith<Readers> done) override;
  void OpenChanges(absl::Span<const std::string> names, LogStart start,
                   const LogPoints& points, Wake wake,
                   DoneWith<Readers> done) override;
  void JoinGroups(absl::Span<const std::string> names, Membership membership,
                  Wake wake, DoneWith<Readers> done) override;
  void OpenExpiring(absl::Span<const std::string> names,
                    ExpiringOptions options, Wake wake,
                    DoneWith<Readers> done) override;

 protected:
  // Neither is owned; both must outlive the store. `peers` may be null.
  SlotStore(SlotMap* slots, PeerStores* peers)
      : slots_(*slots), peers_(peers) {}

  SlotMap& slots() const { return slots_; }
  PeerStores* peers() const { return peers_; }
  size_t SlotOf(absl::string_view name) const;

  // What does it for a slot that this node serves, whose maps are `maps`; and what has
  // it done by the node at `address`.
  virtual Store* Here(Store* maps) = 0;
  virtual Store* There(const std::string& address) = 0;

 private:
  using OpenSome = std::function<void(absl::Span<const std::string> names,
                                      Wake wake, DoneWith<Readers> done)>;

  Choice AtOnce(const About& about) override;
  void Next(std::shared_ptr<Call> call) override;
  bool Again(const std::shared_ptr<Call>& call,
             const absl::Status& error) override;
  Readers Keep(const About& about, const std::shared_ptr<Store>& kept,
               const Wake& wake, Readers readers) override;
  void TryLater(std::shared_ptr<Call> call);
  size_t SlotOf(const About& about) const;
  bool InOneSlot(absl::Span<const std::string> names) const;
  // Opens those of each slot by itself.
  void OpenSplit(absl::Span<const std::string> names, const Wake& wake,
                 const OpenSome& open, DoneWith<Readers> done);

  SlotMap& slots_;
  PeerStores* const peers_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_SLOT_STORE_H_
