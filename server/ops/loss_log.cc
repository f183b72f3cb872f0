#include "server/ops/loss_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"

namespace timecache::server {
namespace {

constexpr char kSuspectEvents[] = "suspect_events";
// Of a key in a line.
constexpr size_t kMaxLoggedKeyBytes = 64;

}  // namespace

LossLog::LossLog(const Registries* registries, const Clock* clock,
                 std::vector<Counter> counters, Write write)
    : registries_(registries),
      clock_(clock),
      counters_(std::move(counters)),
      write_(std::move(write)) {}

void LossLog::Look() {
  Count();
  for (const FoldedLines::Line& line : folded_.TakeDue(clock_->NowUs())) {
    WriteLine(line.kind, line.count);
  }
}

void LossLog::Finish() {
  Count();
  for (const FoldedLines::Line& line : folded_.TakeDue(kNeverUs)) {
    WriteLine(line.kind, line.count);
  }
}

void LossLog::Count() {
  const int64_t now_us = clock_->NowUs();
  for (Counter& counter : counters_) {
    Add(counter.event, "", "", counter.value(), &counter.before, now_us);
  }
  registries_->ForEachMap([&](const auto& map, int64_t /*now_us*/) {
    CountExpired(map);
    for (const auto& group : map->groups().List()) {
      CountGroup(map->namespace_name(), group, now_us);
    }
  });
  absl::erase_if(groups_,
                 [](const auto& each) { return each.second.group.expired(); });
  absl::erase_if(maps_,
                 [](const auto& each) { return each.second.map.expired(); });
}

void LossLog::CountExpired(const std::shared_ptr<TimeCacheMap>& map) {
  const uint64_t now = map->groups().expired();
  if (now == 0) return;
  CountedMap& counted = maps_[map.get()];
  // Another one may have had this address.
  if (counted.map.lock() != map) counted = {.map = map};
  const uint64_t more = now - std::exchange(counted.expired, now);
  // As many names as a map may have groups.
  for (const auto& group : map->groups().LastExpired(more)) {
    write_(LogLevel::kWarning, "group_expired",
           {{"namespace", map->namespace_name()},
            {"group", group.name},
            {"count", group.unsettled}});
  }
}

void LossLog::CountGroup(const std::string& name,
                         const std::shared_ptr<ConsumerGroup>& group,
                         int64_t now_us) {
  Counted& counted = groups_[group.get()];
  // Another one may have had this address.
  if (counted.group.lock() != group) counted = {.group = group};
  const GroupStatistics now = group->GetStatistics();
  Add("group_events_lost", name, group->name(), now.lost, &counted.lost,
      now_us);
  Add("dead_letters", name, group->name(), now.dead_lettered,
      &counted.dead_lettered, now_us);
  Add("dead_letters_denied", name, group->name(), now.dead_letters_denied,
      &counted.dead_letters_denied, now_us);
  Add("dead_letters_failed", name, group->name(), now.dead_letter_failures,
      &counted.dead_letter_failures, now_us);
  CountSuspects(name, group, &counted.suspected, now_us);
}

void LossLog::CountSuspects(const std::string& name,
                            const std::shared_ptr<ConsumerGroup>& group,
                            uint64_t* before, int64_t now_us) {
  std::optional<Suspect> suspect = group->TakeSuspect();
  if (!suspect.has_value()) return;
  const uint64_t times = suspect->times;
  const auto [worst, first] = suspects_.try_emplace({name, group->name()});
  if (first || worst->second.returns <= suspect->returns) {
    worst->second = *std::move(suspect);
  }
  Add(kSuspectEvents, name, group->name(), times, before, now_us);
}

void LossLog::Add(const char* event, const std::string& name,
                  const std::string& group, uint64_t now, uint64_t* before,
                  int64_t now_us) {
  const uint64_t more = now - std::exchange(*before, now);
  if (more == 0) return;
  FoldedLines::Kind kind = {event, "", name, group};
  if (folded_.Add(kind, more, now_us)) WriteLine(kind, more);
}

void LossLog::WriteLine(const FoldedLines::Kind& kind, uint64_t count) {
  if (kind.name.empty()) {
    const auto counter = std::find_if(
        counters_.begin(), counters_.end(),
        [&kind](const Counter& each) { return kind.event == each.event; });
    if (counter == counters_.end() || counter->last_address == nullptr) {
      write_(LogLevel::kWarning, kind.event, {{"count", count}});
    } else {
      write_(LogLevel::kWarning, kind.event,
             {{"last_address", counter->last_address()}, {"count", count}});
    }
    return;
  }
  const auto suspect = kind.event == kSuspectEvents
                           ? suspects_.find({kind.name, kind.group})
                           : suspects_.end();
  if (suspect == suspects_.end()) {
    write_(LogLevel::kWarning, kind.event,
           {{"namespace", kind.name}, {"group", kind.group}, {"count", count}});
    return;
  }
  const std::string key =
      absl::CEscape(suspect->second.key.substr(0, kMaxLoggedKeyBytes));
  write_(LogLevel::kWarning, kind.event,
         {{"namespace", kind.name},
          {"group", kind.group},
          {"key", key},
          {"returns", static_cast<int64_t>(suspect->second.returns)},
          {"count", count},
          {"about",
           "the streams of members that hold it end again and again: it may "
           "crash them, and is delivered after growing pauses"}});
  suspects_.erase(suspect);
}

}  // namespace timecache::server
