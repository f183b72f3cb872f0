// Plays with a consumer group: its members come, take, settle, stall and go, as
// the dice say, beside the reference of what the group must do.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_PLAYER_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_PLAYER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/map/time_cache_map.h"
#include "tests/support/delivery/delivery_group.h"
#include "tests/support/delivery/delivery_reference.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {

struct GroupPlayerOptions {
  GroupOptions group;
  size_t max_members = 4;
  // Whether single_active is turned on and off.
  bool single_active_changes = false;
  // Whether the map has somewhere to put dead letters.
  bool dead_letters = false;
  // Of a thousand settlements, how many are of something that is not to be
  // settled so.
  int wrong_per_mille = 80;
  // Of a thousand settlements, how many are no ACK.
  int refuse_per_mille = 400;
};

// Not thread-safe.
class GroupPlayer {
 public:
  // Puts into the model of the map what the engine has put back, under the
  // version that it gave.
  using PutBack = std::function<Result(const Operation& op, uint64_t version)>;

  // None is owned; all must outlive the player.
  GroupPlayer(std::string name, const GroupPlayerOptions& options,
              TimeCacheMap* map, DeliveryReference* events,
              const RetainedReference* log, Dice* dice, PutBack put_back);

  // Makes the group; all that died by `now_us` must be known to `events`.
  void Create(ExpiryLog::Start start, int64_t now_us);
  void Delete();

  // One act of a member or an administrator.
  void Step(int64_t now_us);
  // The map was swept.
  void AfterSweep(int64_t now_us);
  // The process ran out of memory, and the log has told how much it dropped.
  void AfterSqueeze(int64_t now_us);
  // Takes and settles until nothing is left; `pass` lets time go on to the
  // given moment and sweeps.
  void Drain(const std::function<int64_t(int64_t)>& pass, int64_t now_us);

  // The sink got a dead letter of this group.
  void CheckDeadLetter(uint64_t number, absl::string_view value, bool put,
                       int64_t now_us);
  // What may be given out is known to a member that has room for it.
  void CheckWoken() const;
  void CheckStatistics() const;
  // The group is deleted, by itself or with its map.
  void CheckClosed();

  // What happened, for the eye.
  std::string Story() const;
  const std::string& name() const { return name_; }
  // When something will be timed out, or no longer delayed.
  int64_t NextDueUs() const { return reference_->NextDueUs(); }

 private:
  // Not moved while the engine's member lives.
  struct Member {
    int id = 0;
    std::unique_ptr<ConsumerGroup::Member> member;
    bool woken = true;
    bool more = false;
  };

  static constexpr size_t kMaxPast = 100;

  void Join();
  void Leave(int64_t now_us);
  void Take(Member* member, int max_events, int64_t max_bytes, int64_t now_us);
  void SettleSome(int64_t now_us);
  void SettleAll(const Member& member, int64_t now_us);
  void Settle(const std::vector<Settlement>& settlements, int64_t now_us);
  void CheckSettled(const Settlement& settlement, const SettleResult& result,
                    int64_t now_us);
  bool CheckPutBack(const Settlement& settlement, const SettleResult& result);
  Settlement RandomSettlement(const std::vector<Settlement>& held);
  // Members that were woken, or know that there is more, and have not come.
  std::set<int> Woken() const;
  void Update();
  void Count();

  const std::string name_;
  const GroupPlayerOptions options_;
  TimeCacheMap* const map_;
  DeliveryReference* const events_;
  const RetainedReference* const log_;
  Dice* const dice_;
  const PutBack put_back_;

  std::shared_ptr<ConsumerGroup> group_;
  std::unique_ptr<DeliveryGroup> reference_;
  std::vector<std::unique_ptr<Member>> members_;
  int last_member_ = 0;
  // What was given out last of each event that may be settled.
  std::map<uint64_t, Delivery> given_;
  // Settlements of deliveries, many of which are over.
  std::vector<Settlement> past_;
  // Of groups of this name that were deleted, and of this one.
  GroupStatistics sum_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_PLAYER_H_
