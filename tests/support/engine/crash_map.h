// A map that crashes and is made again from what was committed of its changes.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_MAP_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_MAP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/groups/group_change.h"
#include "server/engine/map/map_replay.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {

// A change that owns what it says.
class KeptChange {
 public:
  KeptChange(int shard, const Change& change)
      : shard_(shard),
        change_(change),
        key_(change.record.key),
        value_(change.record.value),
        trace_(change.record.view().trace) {
    if (change.answer == nullptr) return;
    answer_ = *change.answer;
    answer_value_ = std::string(answer_.answer.value);
  }

  int shard() const { return shard_; }
  // Views into this.
  Change change() const {
    Change change = change_;
    change.record.key = key_;
    change.record.value = value_;
    if (!trace_.empty()) change.record.trace = trace_.data();
    answer_.answer.value = answer_value_;
    if (change.answer != nullptr) change.answer = &answer_;
    return change;
  }

 private:
  int shard_;
  Change change_;
  std::string key_;
  std::string value_;
  std::string trace_;
  // Of the change, if it has one.
  mutable AnswerTo answer_;
  std::string answer_value_;
};

class KeptGroupChange {
 public:
  explicit KeptGroupChange(const GroupChange& change)
      : change_(change),
        name_(change.name),
        created_by_(change.created_by),
        reason_text_(change.reason_text),
        key_(change.event.key),
        value_(change.event.value),
        trace_(change.event.trace) {}

  // Views into this.
  GroupChange change() const {
    GroupChange change = change_;
    change.name = name_;
    change.created_by = created_by_;
    change.reason_text = reason_text_;
    change.event.key = key_;
    change.event.value = value_;
    change.event.trace = trace_;
    return change;
  }

 private:
  GroupChange change_;
  std::string name_;
  std::string created_by_;
  std::string reason_text_;
  std::string key_;
  std::string value_;
  std::string trace_;
};

class KeptRetainedEvents {
 public:
  explicit KeptRetainedEvents(const RetainedEvents& events)
      : events_(events), views_(events.events.begin(), events.events.end()) {
    for (const ExpiredEvent& event : views_) {
      bytes_.emplace_back(event.key);
      bytes_.emplace_back(event.value);
      bytes_.emplace_back(event.trace);
    }
  }

  // Views into this.
  RetainedEvents events() {
    for (size_t i = 0; i < views_.size(); ++i) {
      views_[i].key = bytes_[3 * i];
      views_[i].value = bytes_[3 * i + 1];
      views_[i].trace = bytes_[3 * i + 2];
    }
    RetainedEvents events = events_;
    events.events = views_;
    return events;
  }

 private:
  RetainedEvents events_;
  std::vector<ExpiredEvent> views_;
  std::vector<std::string> bytes_;
};

// What is made durable at once.
struct Committed {
  std::vector<KeptChange> changes;
  std::optional<Tick> tick;
  std::vector<KeptGroupChange> groups;
  std::vector<KeptRetainedEvents> retained;
  // The end of a walk over the entries.
  std::optional<MapCounts> walk_ends;
  // The first of the retained events, once all of them are there; or 0.
  uint64_t first_retained = 0;
};

// Keeps what is committed over a crash.
class CommitLog {
 public:
  virtual ~CommitLog() = default;
  virtual void Commit(Committed commit) = 0;
  // After a crash: all that was committed, in order.
  virtual std::vector<Committed> Recover() = 0;
  // How many there are, and forgets so many of the oldest.
  virtual size_t size() const = 0;
  virtual void DropFirst(size_t commits) = 0;
};

class MemoryCommitLog final : public CommitLog {
 public:
  void Commit(Committed commit) override {
    commits_.push_back(std::move(commit));
  }
  std::vector<Committed> Recover() override { return commits_; }

  const Committed& last() const { return commits_.back(); }
  size_t size() const override { return commits_.size(); }
  void DropFirst(size_t commits) override {
    commits_.erase(commits_.begin(),
                   commits_.begin() + static_cast<ptrdiff_t>(commits));
  }

 private:
  std::vector<Committed> commits_;
};

// Options of a map of few shards whose events are kept for ever: a crash leaves
// no watcher for whom they would be.
NamespaceOptions CrashOptions(int64_t ttl_us, int num_buckets);

// A map, and a watcher who resumes by his token after each crash. Not
// thread-safe.
class JournaledMap {
 public:
  // The number of its first event.
  static constexpr uint64_t kFirstEvent = 1'000;

  // `log` is not owned.
  JournaledMap(const NamespaceOptions& options, CommitLog* log);

  TimeCacheMap& map() { return *map_; }
  ConsumerGroups& groups() { return map_->groups(); }

  // What was said until now is durable.
  void Commit();
  // And may be told.
  void Permit();
  // Commits, tells and reads all that is due.
  void Settle(int64_t now_us);
  void Read(int64_t max_bytes = 1 << 20);
  // Nobody watches any more.
  void Leave() { cursor_.reset(); }
  // A step of a checkpoint, once what was said before is committed and told: says
  // up to `most` entries or events again; at last all commits from before the
  // first step are dropped. Goes on over a crash. Returns whether there is more.
  bool StepTrim(int64_t now_us, int most);
  // From the oldest that is retained on.
  std::vector<DeliveredEvent> ReadRetained(int64_t now_us);
  // In order, since the beginning, over all crashes.
  const std::vector<DeliveredEvent>& told() const { return told_; }

  // What is told of groups from now on is kept if `keeps` says so.
  using GroupFilter = std::function<bool(const GroupChange& change)>;
  void KeepOnly(GroupFilter keeps) { sink_.KeepOnly(std::move(keeps)); }
  // Where dead letters go, over all crashes.
  void SetDeadLetterSink(ConsumerGroups::DeadLetterSink letters);
  // What would be told now of all groups.
  std::vector<KeptGroupChange> DescribeGroups();

  // The same map again, from what was committed. Events before `first_event`
  // are gone.
  void Crash(int64_t now_us, uint64_t first_event = kFirstEvent);
  // The latest time that the last crash has left.
  int64_t last_us() const { return last_us_; }

 private:
  class Sink final : public MapChangeSink {
   public:
    void Add(int shard, const Change& change) override {
      open_.changes.emplace_back(shard, change);
    }
    void AddTick(const Tick& tick) override { open_.tick = tick; }
    void AddGroup(const GroupChange& change) override {
      if (!keeps_ || keeps_(change)) open_.groups.emplace_back(change);
    }
    void AddRetained(const RetainedEvents& events) override {
      open_.retained.emplace_back(events);
    }
    void EndWalk(const MapCounts& counts) { open_.walk_ends = counts; }
    void EndRetained(uint64_t first) { open_.first_retained = first; }
    void KeepOnly(GroupFilter keeps) { keeps_ = std::move(keeps); }
    // What came since the last one.
    Committed Take() { return std::exchange(open_, {}); }

   private:
    Committed open_;
    GroupFilter keeps_;
  };

  void Make(TimeCacheMap::Origin origin, int64_t now_us);

  // How far a checkpoint is.
  struct Trim {
    enum class Phase { kNone, kEntries, kEvents, kGroups, kDone };
    Phase phase = Phase::kNone;
    size_t commits = 0;
    ScanPosition entries;
    uint64_t end_event = 0;
    ConsumerGroups::WalkPosition groups;
  };

  const NamespaceOptions options_;
  CommitLog* const log_;
  Sink sink_;
  Trim trim_;
  Trim committed_trim_;
  // Whether the log lacks its beginning.
  bool trimmed_ = false;
  // In order, as a journal does.
  std::vector<Tick> permits_;
  std::unique_ptr<VersionSource> versions_;
  std::unique_ptr<TimeCacheMap> map_;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
  LogPoint point_;
  std::vector<DeliveredEvent> told_;
  int64_t last_us_ = INT64_MIN;
  ConsumerGroups::DeadLetterSink letters_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_CRASH_MAP_H_
