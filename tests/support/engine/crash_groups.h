// Consumer groups of a map that crashes, played with beside a model of what of
// them must last.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_GROUPS_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_GROUPS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/engine/groups/consumer_groups.h"
#include "tests/support/engine/crash_map.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {

// Members of a few groups come, take, settle, stall and go, as the dice say.
// Which member is given what is the engine's to choose; what becomes of each
// event is the model's to know. Fails the test where they differ. Not
// thread-safe.
class CrashGroups {
 public:
  // What the world around knows of the map.
  struct World {
    // Puts into the model of the map what the engine has put back, under the
    // version that it gave.
    std::function<Result(const Operation& op, uint64_t version)> put_back;
    // The number behind the events of all that has died.
    std::function<uint64_t()> end_event;
  };

  // Neither is owned.
  CrashGroups(JournaledMap* map, Dice* dice, World world);

  // One act of a member, an administrator, or of what takes dead letters.
  void Step(int64_t now_us);
  // The clock has moved, or the map was swept.
  void Pass(int64_t now_us);
  // What was told until now outlives a crash.
  void Commit() { durable_ = state_; }
  void BeforeCrash();
  void AfterCrash(int64_t now_us);
  // All that died is here: what each group delivered is what was told.
  void CheckContents(const std::vector<DeliveredEvent>& told) const;

  // For the eye: a world in which nothing happens tests nothing.
  struct Story {
    uint64_t acked = 0;
    // Of these, of attempts that a crash had cut off.
    uint64_t acked_from_before = 0;
    uint64_t nacked = 0;
    uint64_t put_back = 0;
    uint64_t timed_out = 0;
    uint64_t returned = 0;
    uint64_t dead_lettered = 0;
    uint64_t lost = 0;
    uint64_t expired = 0;
    uint64_t moved = 0;
    // Events that came again after a crash.
    uint64_t undone = 0;
  };
  const Story& story() const { return story_; }

 private:
  static constexpr int kCaller = -1;

  // An event that is not settled.
  struct Event {
    // That have ended, and count.
    int attempts = 0;
    // Streams that ended, and whether one has since the last of these.
    int returns = 0;
    bool returned = false;
    int64_t ready_us = INT64_MIN;
    // Who has it, and until when; 0: no member; kCaller: that of a fetch.
    int member = 0;
    int64_t times_out_us = 0;
    // It is being put as a dead letter.
    bool claimed = false;
    // By a TERMINATE: it becomes a dead letter, whatever its attempts.
    bool given_up = false;
    // Of the last attempt that counted.
    std::string reason;
    // Somebody had it at a crash, and nobody since: an ACK still settles it.
    bool was_in_flight = false;
    // Who let it time out: a member gets no event twice so.
    std::set<int> late;

    bool was_delivered() const { return attempts > 0 || returns > 0; }
  };
  struct Group {
    // As ConsumerGroup::delivery_id.
    uint64_t id = 0;
    GroupOptions options;
    uint64_t first = 0;
    uint64_t next = 0;
    std::map<uint64_t, Event> unsettled;
    GroupStatistics counts;
    uint64_t unreported = 0;
    int64_t unused_since_us = kNeverUs;
  };
  struct State {
    std::map<std::string, Group> groups;
    std::deque<ConsumerGroups::ExpiredGroup> expired;
  };
  struct Member {
    std::string group;
    std::unique_ptr<ConsumerGroup::Member> member;
  };
  struct Letter {
    std::string group;
    uint64_t number = 0;
    ConsumerGroups::DeadLetterDone done;
  };

  int RandomMember();
  void Create(const std::string& name, int64_t now_us);
  void Seek(const std::string& name, int64_t now_us);
  void Delete(const std::string& name);
  void Update(const std::string& name);
  void Join(const std::string& name);
  void Leave(int id, int64_t now_us);
  void Take(int id, int64_t now_us);
  void Fetch(const std::string& name, int64_t now_us);
  void Settle(const std::string& name, int64_t now_us);
  void CheckSettled(const std::string& name, const Settlement& settlement,
                    const SettleResult& result, int64_t now_us);
  void PutLetter(const ConsumerGroups::DeadLetter& letter,
                 ConsumerGroups::DeadLetterDone done);
  void EndLetter();

  // The model's part of Pass.
  void TimeOut(int64_t now_us);
  void Sync(const std::string& name, int64_t now_us);
  void SyncExpired(const std::string& name, const Group& group, int64_t now_us);
  void EndAttempt(Event* event, int64_t ready_us);
  // When an event is ready again after an attempt in vain.
  static int64_t RetryUs(const Group& group, uint64_t number,
                         const Event& event, int64_t now_us);
  void DrawRetries(GroupOptions* options);
  static void Return(Event* event, int64_t now_us);
  bool HasMember(const std::string& name) const;
  void CheckStatistics(const std::string& name, const Group& group) const;
  void CheckDescribed();
  void CheckContent(uint64_t number, const ExpiredEvent& event,
                    const Death& death);
  std::shared_ptr<ConsumerGroup> Find(const std::string& name) const;

  JournaledMap* const map_;
  Dice* const dice_;
  const World world_;
  int64_t now_us_ = 0;
  State state_;
  State durable_;
  std::map<int, Member> members_;
  int last_member_ = 0;
  std::vector<Letter> letters_;
  // What each event was when it was seen first.
  std::map<uint64_t, std::string> contents_;
  Story story_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_GROUPS_H_
