#include "tests/support/engine/crash_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

constexpr const char* kNames[] = {"a", "b", "c"};
constexpr size_t kMaxMembers = 6;
constexpr char kCreator[] = "alice";
constexpr char kReason[] = "no ink";

constexpr absl::string_view kParts = " parts";
constexpr absl::string_view kTrace = " trace ";

std::string ContentOf(const ExpiredEvent& event, int64_t death_us,
                      Cause cause) {
  return absl::StrCat(
      event.key, "=", event.value, event.parts ? kParts : "", " version ",
      event.version, " put ", event.put_us, " deadline ", event.deadline_us,
      " created ", event.create_us, " own ", event.own_ttl_us, " death ",
      death_us, " cause ", static_cast<int>(cause), kTrace, event.trace);
}

int64_t OwnTtlOf(absl::string_view content) {
  constexpr absl::string_view kOwn = " own ";
  content.remove_prefix(content.find(kOwn) + kOwn.size());
  int64_t ttl_us = 0;
  EXPECT_TRUE(absl::SimpleAtoi(content.substr(0, content.find(' ')), &ttl_us));
  return ttl_us;
}

}  // namespace

CrashGroups::CrashGroups(JournaledMap* map, Dice* dice, World world)
    : map_(map), dice_(dice), world_(std::move(world)) {
  map_->SetDeadLetterSink([this](const ConsumerGroups::DeadLetter& letter,
                                 ConsumerGroups::DeadLetterDone done) {
    PutLetter(letter, std::move(done));
  });
}

std::shared_ptr<ConsumerGroup> CrashGroups::Find(
    const std::string& name) const {
  const auto group = map_->groups().Find(name);
  EXPECT_TRUE(group.ok()) << group.status();
  return group.ok() ? *group : nullptr;
}

// --- Acts.

void CrashGroups::Step(int64_t now_us) {
  Pass(now_us);
  const std::string name = kNames[dice_->Index(std::size(kNames))];
  const int64_t what = dice_->Draw(0, 999);
  if (!state_.groups.contains(name)) {
    if (what < 200) Create(name, now_us);
  } else if (what < 100) {
    if (members_.size() < kMaxMembers) Join(name);
  } else if (what < 150) {
    if (!members_.empty()) Leave(RandomMember(), now_us);
  } else if (what < 550) {
    if (!members_.empty()) Take(RandomMember(), now_us);
  } else if (what < 950) {
    Settle(name, now_us);
  } else if (what < 970) {
    if (!letters_.empty()) EndLetter();
  } else if (what < 985) {
    Update(name);
  } else if (what < 988) {
    Delete(name);
  } else if (what < 994) {
    Seek(name, now_us);
  } else if (what < 999) {
    if (HasMember(name)) Fetch(name, now_us);
  }
  Pass(now_us);
}

int CrashGroups::RandomMember() {
  const auto index = static_cast<ptrdiff_t>(dice_->Index(members_.size()));
  return std::next(members_.begin(), index)->first;
}

void CrashGroups::Create(const std::string& name, int64_t now_us) {
  GroupOptions options;
  options.ack_timeout_us = dice_->Draw(kMinAckTimeoutUs, 3 * kSecond);
  options.max_attempts = static_cast<int>(dice_->Draw(1, 4));
  DrawRetries(&options);
  if (dice_->Chance(800)) {
    // Short: few groups are without members for long.
    options.unused_ttl_us = dice_->Draw(kMinUnusedTtlUs, 2 * kSecond);
  }
  const auto start =
      dice_->Chance(500) ? ExpiryLog::Start::kNow : ExpiryLog::Start::kEarliest;
  const uint64_t end = world_.end_event();
  const auto made =
      map_->groups().Create(name, options, start, now_us, kCreator);
  ASSERT_TRUE(made.ok()) << made.status();
  Group& group = state_.groups[name];
  group.options = options;
  group.unused_since_us = now_us;
  group.id = (*made)->delivery_id();
  const GroupStatistics statistics = (*made)->GetStatistics();
  for (const KeptGroupChange& kept : map_->DescribeGroups()) {
    const GroupChange change = kept.change();
    if (change.kind != GroupChange::Kind::kExists || change.name != name) {
      continue;
    }
    group.first = change.first;
    group.next = group.first + change.statistics.lost;
    ASSERT_EQ(change.end - change.first, statistics.events);
    if (start == ExpiryLog::Start::kNow) {
      ASSERT_EQ(change.end, end);
    }
  }
  group.counts.lost = statistics.lost;
  group.unreported = statistics.lost;
  const auto before =
      std::find_if(state_.expired.begin(), state_.expired.end(),
                   [&name](const auto& each) { return each.name == name; });
  if (before != state_.expired.end()) {
    // All from there on is lost, or to be delivered.
    ASSERT_EQ(group.first, before->next_event - before->unsettled);
    state_.expired.erase(before);
  } else {
    ASSERT_EQ(group.counts.lost, 0u);
  }
}

void CrashGroups::DrawRetries(GroupOptions* options) {
  options->retry_delay_us = dice_->Chance(500) ? 0 : dice_->Draw(1, kSecond);
  options->retry_jitter_percent = static_cast<int>(dice_->Draw(0, 100));
}

// To about where the log is retained, or within that.
void CrashGroups::Seek(const std::string& name, int64_t now_us) {
  const EventChunk log =
      map_->map()
          .Subscribe(ExpiryLog::Start::kEarliest, now_us, [] {})
          ->Read(INT64_MAX);
  if (log.more) return;
  const uint64_t end = log.point.next_event;
  uint64_t retained = end;
  for (const auto& batch : log.batches) {
    retained -= static_cast<uint64_t>(batch->size());
  }
  const auto least = static_cast<int64_t>(
      retained > JournaledMap::kFirstEvent + 3 ? retained - 3 : retained);
  const auto asked =
      static_cast<uint64_t>(dice_->Draw(least, static_cast<int64_t>(end)));
  const bool drop = dice_->Chance(300);
  const uint64_t first = std::max(asked, retained);
  LogPoint point = log.point;
  point.next_event = asked;
  Group& group = state_.groups.at(name);
  const auto moved =
      map_->groups().Seek(name, LogPosition::At(point), drop, now_us);
  ASSERT_TRUE(moved.ok()) << moved.status();
  const std::map<uint64_t, Event> before = std::exchange(group.unsettled, {});
  uint64_t still = 0;
  for (const auto& [number, event] : before) {
    if (number >= first || (number < asked && drop)) continue;
    Event& kept = group.unsettled[number];
    if (number < asked) {
      kept = event;
      kept.member = 0;
    } else {
      kept.claimed = event.claimed;
      ++still;
    }
  }
  const uint64_t lost = first - asked - still;
  group.counts.lost += lost;
  group.unreported += lost;
  if (drop || first < group.next) group.next = std::max(first, end);
  for (uint64_t number = first; number < group.next; ++number) {
    group.unsettled[number];
  }
  const auto found = Find(name);
  group.id = found->delivery_id();
  group.first = group.next - found->GetStatistics().events;
  ++story_.moved;
}

void CrashGroups::Delete(const std::string& name) {
  std::erase_if(members_,
                [&](const auto& each) { return each.second.group == name; });
  std::erase_if(letters_,
                [&](const Letter& letter) { return letter.group == name; });
  ASSERT_TRUE(map_->groups().Delete(name).ok());
  state_.groups.erase(name);
}

void CrashGroups::Update(const std::string& name) {
  GroupOptions& options = state_.groups.at(name).options;
  options.ack_timeout_us = dice_->Draw(kMinAckTimeoutUs, 3 * kSecond);
  options.max_attempts = static_cast<int>(dice_->Draw(1, 4));
  DrawRetries(&options);
  ASSERT_TRUE(map_->groups()
                  .Update(name,
                          [&options](GroupOptions* to) {
                            *to = options;
                            return absl::OkStatus();
                          })
                  .ok());
}

void CrashGroups::Join(const std::string& name) {
  const int id = ++last_member_;
  members_[id] = {
      name, Find(name)->Join(static_cast<int>(dice_->Draw(1, 20)), [] {})};
  state_.groups.at(name).unused_since_us = kNeverUs;
}

void CrashGroups::Leave(int id, int64_t now_us) {
  const auto it = members_.find(id);
  Group& group = state_.groups.at(it->second.group);
  for (auto& [number, event] : group.unsettled) {
    if (event.member != id) continue;
    Return(&event, now_us);
    ++group.counts.returned;
    ++story_.returned;
  }
  members_.erase(it);
}

void CrashGroups::Take(int id, int64_t now_us) {
  Member& member = members_.at(id);
  Group& group = state_.groups.at(member.group);
  const EventChunk chunk = member.member->Take(
      now_us, static_cast<int>(dice_->Draw(1, 20)), dice_->Draw(1, 5'000));
  ASSERT_FALSE(chunk.closed);
  EXPECT_EQ(chunk.lost, group.unreported);
  group.unreported = 0;
  for (const Delivery& delivery : chunk.deliveries) {
    const auto it = group.unsettled.find(delivery.event_id);
    ASSERT_NE(it, group.unsettled.end()) << delivery.event_id;
    Event& event = it->second;
    ASSERT_EQ(event.member, 0);
    ASSERT_FALSE(event.claimed);
    ASSERT_EQ(delivery.attempt, event.attempts + 1);
    ASSERT_EQ(delivery.returns, event.returns);
    ASSERT_FALSE(event.given_up);
    ASSERT_EQ(delivery.reason_text == nullptr, event.reason.empty());
    ASSERT_FALSE(event.late.contains(id));
    ASSERT_LE(event.attempts, group.options.max_attempts - 1);
    ASSERT_LE(event.ready_us, now_us);
    event.member = id;
    event.was_in_flight = false;
    event.times_out_us = now_us + group.options.ack_timeout_us;
    ++group.counts.delivered;
    if (event.was_delivered()) ++group.counts.redelivered;
    CheckContent(delivery.event_id, delivery.event(), delivery.batch->death());
  }
}

// A call, of which the answer arrives, or does not. A loss that it did not report
// is, but for a crash, reported again.
void CrashGroups::Fetch(const std::string& name, int64_t now_us) {
  Group& group = state_.groups.at(name);
  const bool arrives = group.unreported > 0 || dice_->Chance(700);
  const int id = ++last_member_;
  members_[id] = {name, Find(name)->Join(20, [] {}, {.fetches = true})};
  Take(id, now_us);
  if (!arrives) return Leave(id, now_us);
  members_.at(id).member->Leave(now_us, StreamEnd::kAnswered);
  members_.erase(id);
  for (auto& [number, event] : group.unsettled) {
    if (event.member == id) event.member = kCaller;
  }
}

void CrashGroups::Settle(const std::string& name, int64_t now_us) {
  std::vector<Settlement> settlements;
  const uint64_t group_id = Find(name)->delivery_id();
  for (const auto& [number, event] : state_.groups.at(name).unsettled) {
    if (settlements.size() == 8) break;
    Settlement settlement = {number, event.attempts + 1};
    settlement.returns = event.returns;
    settlement.group_id = group_id;
    if (event.member == 0) {
      // Late.
      if (event.attempts > 0 && dice_->Chance(30)) {
        --settlement.attempt;
      } else if (!event.was_in_flight || !dice_->Chance(300)) {
        continue;
      }
      settlements.push_back(settlement);
      continue;
    }
    if (dice_->Chance(300)) continue;
    const int64_t kind = dice_->Draw(0, 9);
    if (kind < 3) settlement.action = SettleAction::kNack;
    if (kind < 3 && dice_->Chance(500)) settlement.reason = kReason;
    if (kind == 4) settlement.action = SettleAction::kTerminate;
    if (kind == 4) settlement.reason = kReason;
    if (kind < 2) settlement.delay_us = dice_->Draw(1, 5 * kSecond);
    if (kind == 3) settlement.action = SettleAction::kPutBack;
    settlements.push_back(settlement);
  }
  std::vector<SettleResult> results(settlements.size());
  ASSERT_TRUE(map_->groups()
                  .Settle(name, settlements, now_us, absl::MakeSpan(results))
                  .ok());
  for (size_t i = 0; i < results.size(); ++i) {
    CheckSettled(name, settlements[i], results[i], now_us);
  }
}

void CrashGroups::CheckSettled(const std::string& name,
                               const Settlement& settlement,
                               const SettleResult& result, int64_t now_us) {
  Group& group = state_.groups.at(name);
  const auto it = group.unsettled.find(settlement.event_id);
  if (settlement.action == SettleAction::kPutBack) {
    absl::string_view content = contents_.at(settlement.event_id);
    const int64_t own_ttl_us = OwnTtlOf(content);
    const std::string trace(
        content.substr(content.rfind(kTrace) + kTrace.size()));
    content = content.substr(0, content.find(" version "));
    const bool parts = absl::ConsumeSuffix(&content, kParts);
    const std::pair<std::string, std::string> entry =
        absl::StrSplit(content, absl::MaxSplits('=', 1));
    Operation op = Operation::Put(entry.first, entry.second);
    op.parts = parts;
    op.SetTrace(trace);
    op.condition = Condition::kIfAbsent;
    if (own_ttl_us != 0) op = op.WithTtl(own_ttl_us);
    const Result put = world_.put_back(op, result.version);
    const bool settled =
        put.status.ok() ||
        put.status.code() == absl::StatusCode::kFailedPrecondition;
    ASSERT_EQ(result.status.ok(), settled) << result.status;
    if (!settled) return;
    group.unsettled.erase(it);
    ++group.counts.put_back;
    ++story_.put_back;
    return;
  }
  ASSERT_TRUE(result.status.ok()) << result.status;
  if (settlement.action == SettleAction::kAck) {
    if (it->second.member == 0 && settlement.attempt > it->second.attempts) {
      ++group.counts.delivered;
      if (it->second.was_delivered()) ++group.counts.redelivered;
      ++story_.acked_from_before;
    }
    group.unsettled.erase(it);
    ++group.counts.acked;
    ++story_.acked;
    return;
  }
  const int64_t retry_us =
      RetryUs(group, settlement.event_id, it->second, now_us);
  Event& event = it->second;
  if (settlement.action == SettleAction::kTerminate) {
    EndAttempt(&event, now_us);
    event.given_up = true;
  } else {
    // The last one makes a dead letter at once.
    const bool last = event.attempts + 1 >= group.options.max_attempts;
    EndAttempt(&event, settlement.delay_us.has_value() && !last
                           ? now_us + *settlement.delay_us
                           : retry_us);
    ++group.counts.nacked;
    ++story_.nacked;
  }
  event.reason = std::string(settlement.reason);
}

int64_t CrashGroups::RetryUs(const Group& group, uint64_t number,
                             const Event& event, int64_t now_us) {
  const int attempt = event.attempts + 1;
  return attempt >= group.options.max_attempts
             ? now_us
             : now_us + RetryDelayUs(group.options, number, attempt);
}

void CrashGroups::PutLetter(const ConsumerGroups::DeadLetter& letter,
                            ConsumerGroups::DeadLetterDone done) {
  const std::vector<std::string> parts = absl::StrSplit(letter.key, '/');
  ASSERT_EQ(parts.size(), 3u);
  uint64_t number = 0;
  ASSERT_TRUE(absl::SimpleAtoi(parts[2], &number));
  Group& group = state_.groups.at(parts[1]);
  const auto it = group.unsettled.find(number);
  ASSERT_NE(it, group.unsettled.end());
  EXPECT_TRUE(it->second.given_up ||
              it->second.attempts >= group.options.max_attempts);
  EXPECT_EQ(letter.value.find(kReason) != std::string::npos,
            !it->second.reason.empty());
  EXPECT_EQ(it->second.member, 0);
  EXPECT_LE(it->second.ready_us, now_us_);
  EXPECT_EQ(letter.created_by, kCreator);
  it->second.claimed = true;
  letters_.push_back({parts[1], number, std::move(done)});
  if (dice_->Chance(500)) EndLetter();
}

void CrashGroups::EndLetter() {
  Letter letter = std::move(letters_.back());
  letters_.pop_back();
  const int64_t what = dice_->Draw(0, 9);
  const auto in = state_.groups.find(letter.group);
  // The group may be gone, or the event settled meanwhile.
  const bool known = in != state_.groups.end() &&
                     in->second.unsettled.contains(letter.number) &&
                     in->second.unsettled.at(letter.number).claimed;
  if (known && what < 8) in->second.unsettled.erase(letter.number);
  if (known && what >= 8) {
    in->second.unsettled.at(letter.number).claimed = false;
  }
  if (what < 7) {
    letter.done(absl::OkStatus());
    if (!known) return;
    ++in->second.counts.dead_lettered;
    ++story_.dead_lettered;
  } else if (what == 7) {
    letter.done(absl::OutOfRangeError("too large"));
    if (!known) return;
    ++in->second.counts.dead_letters_dropped;
    ++in->second.counts.lost;
    ++in->second.unreported;
  } else {
    letter.done(absl::UnavailableError("later"));
  }
}

void CrashGroups::EndAttempt(Event* event, int64_t ready_us) {
  ++event->attempts;
  event->returned = false;
  event->reason.clear();
  event->ready_us = ready_us;
  event->member = 0;
}

void CrashGroups::Return(Event* event, int64_t now_us) {
  ++event->returns;
  event->returned = true;
  event->ready_us = now_us;
  event->member = 0;
}

bool CrashGroups::HasMember(const std::string& name) const {
  return std::any_of(
      members_.begin(), members_.end(),
      [&name](const auto& each) { return each.second.group == name; });
}

// --- Time.

void CrashGroups::TimeOut(int64_t now_us) {
  for (auto& [name, group] : state_.groups) {
    for (auto& [number, event] : group.unsettled) {
      if (event.member == 0 || event.times_out_us > now_us) continue;
      event.late.insert(event.member);
      EndAttempt(&event, RetryUs(group, number, event, now_us));
      ++group.counts.timed_out;
      ++story_.timed_out;
    }
    if (!HasMember(name) && group.unused_since_us == kNeverUs) {
      group.unused_since_us = now_us;
    }
  }
}

void CrashGroups::Pass(int64_t now_us) {
  now_us_ = now_us;
  TimeOut(now_us);
  for (int turns = 100; turns > 0 && map_->groups().Advance(now_us); --turns) {
  }
  const auto expired = map_->groups().LastExpired(ConsumerGroups::kMaxGroups);
  // Those that have expired come in the order in which they did.
  std::vector<std::string> names;
  for (const auto& group : expired) {
    if (state_.groups.contains(group.name)) names.push_back(group.name);
  }
  for (const auto& [name, group] : state_.groups) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) Sync(name, now_us);
  ASSERT_EQ(expired.size(), state_.expired.size());
  for (size_t i = 0; i < expired.size(); ++i) {
    EXPECT_EQ(expired[i].name, state_.expired[i].name);
    EXPECT_EQ(expired[i].unsettled, state_.expired[i].unsettled);
    EXPECT_EQ(expired[i].next_event, state_.expired[i].next_event);
  }
}

// What the log has appended is known, and what was too much lost: the oldest
// that no member has.
void CrashGroups::Sync(const std::string& name, int64_t now_us) {
  Group& group = state_.groups.at(name);
  const auto found = map_->groups().Find(name);
  if (!found.ok()) return SyncExpired(name, group, now_us);
  const GroupStatistics statistics = (*found)->GetStatistics();
  const uint64_t next = group.first + statistics.events;
  ASSERT_GE(next, group.next);
  for (; group.next < next; ++group.next) group.unsettled[group.next];
  ASSERT_GE(statistics.lost, group.counts.lost);
  auto it = group.unsettled.begin();
  for (; group.counts.lost < statistics.lost; ++group.counts.lost) {
    while (it != group.unsettled.end() &&
           (it->second.member != 0 || it->second.claimed)) {
      ++it;
    }
    ASSERT_NE(it, group.unsettled.end());
    it = group.unsettled.erase(it);
    ++group.unreported;
    ++story_.lost;
  }
  CheckStatistics(name, group);
}

void CrashGroups::SyncExpired(const std::string& name, const Group& group,
                              int64_t now_us) {
  ASSERT_GT(group.options.unused_ttl_us, 0);
  ASSERT_GE(now_us - group.unused_since_us, group.options.unused_ttl_us);
  const auto all = map_->groups().LastExpired(ConsumerGroups::kMaxGroups);
  const auto expired =
      std::find_if(all.begin(), all.end(),
                   [&name](const auto& each) { return each.name == name; });
  ASSERT_NE(expired, all.end());
  // Some may have come since this was looked at last.
  const uint64_t more = expired->next_event - group.next;
  EXPECT_EQ(expired->unsettled,
            group.unsettled.size() + group.unreported + more);
  state_.expired.push_back(*expired);
  std::erase_if(letters_,
                [&](const Letter& letter) { return letter.group == name; });
  state_.groups.erase(name);
  ++story_.expired;
}

void CrashGroups::CheckStatistics(const std::string& name,
                                  const Group& group) const {
  const GroupStatistics is = Find(name)->GetStatistics();
  uint64_t in_flight = 0;
  for (const auto& [number, event] : group.unsettled) {
    if (event.member != 0) ++in_flight;
  }
  EXPECT_EQ(is.in_flight, in_flight);
  EXPECT_EQ(is.backlog, group.unsettled.size() - in_flight);
  EXPECT_EQ(is.delivered, group.counts.delivered);
  EXPECT_EQ(is.redelivered, group.counts.redelivered);
  EXPECT_EQ(is.acked, group.counts.acked);
  EXPECT_EQ(is.nacked, group.counts.nacked);
  EXPECT_EQ(is.put_back, group.counts.put_back);
  EXPECT_EQ(is.timed_out, group.counts.timed_out);
  EXPECT_EQ(is.returned, group.counts.returned);
  EXPECT_EQ(is.suspects, 0u);
  EXPECT_EQ(is.dead_lettered, group.counts.dead_lettered);
  EXPECT_EQ(is.dead_letters_dropped, group.counts.dead_letters_dropped);
  EXPECT_EQ(is.lost, group.counts.lost);
  EXPECT_EQ(is.unused_since_us, group.unused_since_us);
}

// --- Crashes.

void CrashGroups::BeforeCrash() {
  letters_.clear();
  members_.clear();
}

void CrashGroups::AfterCrash(int64_t now_us) {
  for (const auto& [name, group] : state_.groups) {
    const auto durable = durable_.groups.find(name);
    if (durable == durable_.groups.end()) continue;
    for (const auto& [number, event] : durable->second.unsettled) {
      if (!group.unsettled.contains(number)) ++story_.undone;
    }
  }
  const State then = std::exchange(state_, durable_);
  // No delivery goes on, and none that was going on has been told.
  for (auto& [name, group] : state_.groups) {
    const auto before = then.groups.find(name);
    for (auto& [number, event] : group.unsettled) {
      if (event.member != 0) {
        --group.counts.delivered;
        if (event.was_delivered()) --group.counts.redelivered;
      }
      if (before != then.groups.end()) {
        const auto last = before->second.unsettled.find(number);
        event.was_in_flight |= last != before->second.unsettled.end() &&
                               last->second.member != 0 &&
                               last->second.attempts == event.attempts &&
                               last->second.returns == event.returns;
      }
      event.member = 0;
      event.claimed = false;
      event.late.clear();
    }
  }
  ASSERT_EQ(map_->groups().List().size(), state_.groups.size());
  for (auto& [name, group] : state_.groups) {
    const auto found = Find(name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->created_by(), kCreator);
    EXPECT_EQ(found->delivery_id(), group.id);
    EXPECT_EQ(found->options().ack_timeout_us, group.options.ack_timeout_us);
    EXPECT_EQ(found->options().max_attempts, group.options.max_attempts);
    EXPECT_EQ(found->options().unused_ttl_us, group.options.unused_ttl_us);
    // What was in the log, and not in the group.
    const uint64_t next = group.first + found->GetStatistics().events;
    ASSERT_GE(next, group.next);
    for (; group.next < next; ++group.next) group.unsettled[group.next];
    CheckStatistics(name, group);
  }
  CheckDescribed();
  durable_ = state_;
  Pass(now_us);
}

// Each event that is not settled is there, as it was.
void CrashGroups::CheckDescribed() {
  std::map<std::string, std::map<uint64_t, Event>> expected;
  for (const auto& [name, group] : state_.groups) {
    expected[name] = group.unsettled;
  }
  for (const KeptGroupChange& kept : map_->DescribeGroups()) {
    const GroupChange change = kept.change();
    if (change.kind == GroupChange::Kind::kExists) {
      EXPECT_EQ(change.unreported,
                state_.groups.at(std::string(change.name)).unreported);
    }
    if (change.kind == GroupChange::Kind::kPast) {
      const Group& group = state_.groups.at(std::string(change.name));
      const Event& event = group.unsettled.at(change.first);
      EXPECT_EQ(change.returns, event.returns);
      EXPECT_EQ(change.returned, event.returned);
    }
    if (change.kind != GroupChange::Kind::kKept) continue;
    auto& events = expected[std::string(change.name)];
    const auto it = events.find(change.first);
    ASSERT_NE(it, events.end()) << change.name << " " << change.first;
    EXPECT_EQ(change.attempt, it->second.attempts);
    // A delay that is over at the latest time that is known is no more; nor may
    // be one that was over when it was told again, at a time that is not known.
    const int64_t ready_us = it->second.ready_us;
    const bool told_as_over =
        ready_us <= now_us_ && change.ready_us == change.death.death_us;
    if (ready_us > map_->last_us() && !told_as_over) {
      EXPECT_EQ(change.ready_us, ready_us);
    } else {
      EXPECT_EQ(change.ready_us, change.death.death_us);
    }
    CheckContent(change.first, change.event, change.death);
    events.erase(it);
  }
  for (const auto& [name, events] : expected) {
    EXPECT_TRUE(events.empty()) << name << " forgot " << events.begin()->first;
  }
}

void CrashGroups::CheckContent(uint64_t number, const ExpiredEvent& event,
                               const Death& death) {
  const std::string content = ContentOf(event, death.death_us, death.cause);
  const auto [it, first] = contents_.emplace(number, content);
  EXPECT_EQ(it->second, content) << number;
}

void CrashGroups::CheckContents(const std::vector<DeliveredEvent>& told) const {
  for (const auto& [number, content] : contents_) {
    const uint64_t index = number - JournaledMap::kFirstEvent;
    ASSERT_LT(index, told.size());
    const DeliveredEvent& event = told[index];
    EXPECT_EQ(content,
              ContentOf({event.key, event.value, event.version, event.put_us,
                         event.deadline_us, event.parts, event.create_us,
                         event.own_ttl_us, event.trace},
                        event.death_us, event.cause));
  }
}

}  // namespace timecache::server
