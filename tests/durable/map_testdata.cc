#include "tests/durable/map_testdata.h"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

// --- What is in it.

// Says whether all went well.
class Filler {
 public:
  Filler(Filling filling, DurableStore* store)
      : filling_(filling), store_(*store) {}

  bool Run() {
    MakeNamespaces();
    Change("first");
    Settle();
    if (filling_ == Filling::kTrimmed || filling_ == Filling::kRetained) {
      MakeCheckpoint();
    }
    Change("second");
    // A group that has taken none of its events, and one that is gone.
    MakeGroup("idle");
    MakeGroup("gone");
    Expect(store_.map("sessions")->groups().Delete("gone").ok());
    Evict();
    if (filling_ == Filling::kChanged) {
      ChangeValues();
      Pause();
    }
    if (filling_ == Filling::kRetained) Restart(20 * kSecond);
    return good_;
  }

 private:
  void Expect(bool condition) { good_ = good_ && condition; }
  void Do(absl::string_view name, const Operation& operation) {
    Expect(store_.Execute(name, operation).status.ok());
  }

  void MakeNamespaces() {
    NamespaceOptions sessions = DurableOptions();
    sessions.dead_letter_namespace = "letters";
    Expect(store_.Create("sessions", sessions).ok());
    Expect(store_.Create("letters", DurableOptions(NamespaceDurability::kAsync))
               .ok());
    Expect(store_.Create("deleted").ok());
    Do("deleted", Operation::Put("key", "value"));
    NamespaceOptions small = DurableOptions(NamespaceDurability::kAsync);
    small.max_entries = 3;
    small.limit_policy = LimitPolicy::kEvictOldest;
    small.num_shards = 1;
    Expect(store_.Create("small", small).ok());
    Expect(store_.registry().Delete("deleted").ok());
    MakeGroup("workers");
  }

  void MakeGroup(absl::string_view name) {
    GroupOptions options;
    options.max_attempts = 2;
    options.ack_timeout_us = 5 * kSecond;
    Expect(store_.map("sessions")
               ->groups()
               .Create(name, options, ExpiryLog::Start::kEarliest,
                       store_.clock().NowUs(), "somebody")
               .ok());
  }

  // Entries of all kinds; some die, in three ways.
  void Change(const std::string& prefix) {
    const auto put = [&](absl::string_view key, const std::string& value,
                         int64_t ttl_us = 0) {
      const std::string whole = absl::StrCat(prefix, "-", key);
      const Operation operation = Operation::Put(whole, value);
      Do("sessions", ttl_us == 0 ? operation : operation.WithTtl(ttl_us));
    };
    for (int i = 0; i < 20; ++i) {
      put(absl::StrCat("short", i), absl::StrCat("value", i), 2 * kSecond);
    }
    put("rotated", "by hand", kSecond);
    store_.map("sessions")->Rotate(store_.clock().NowUs());
    put("empty", "");
    put("large", std::string(3'000, 'v'));
    put(absl::string_view("\0\xff binary", 9), std::string("\0\x80", 2));
    put("long-lived", "for a day", 86'400 * kSecond);
    put("removed", "value");
    Do("sessions", Operation::Remove(absl::StrCat(prefix, "-removed")));
    put("overwritten", "before");
    store_.AdvanceBy(3 * kSecond);
    put("overwritten", "after, and longer");
    put("renewed", "value");
    store_.AdvanceBy(5 * kSecond);
    Do("sessions", Operation::Touch(absl::StrCat(prefix, "-renewed")));
    NamespaceOptions options = store_.map("sessions")->options();
    options.max_operations_per_second += 100'000;
    Expect(store_.registry()
               .Update("sessions",
                       [&](NamespaceOptions* to) {
                         *to = options;
                         return absl::OkStatus();
                       })
               .ok());
  }

  // Of the first events: settled, failed once, put back, failed for good.
  void Settle() {
    const auto group = store_.map("sessions")->groups().Find("workers");
    Expect(group.ok());
    {
      const auto member = (*group)->Join(100, [] {});
      const GroupChunk chunk =
          member->Take(store_.clock().NowUs(), 8, int64_t{1} << 20);
      Expect(chunk.deliveries.size() == 8);
      for (size_t i = 0; i < chunk.deliveries.size(); ++i) {
        Settlement settlement = {chunk.deliveries[i].event_id,
                                 chunk.deliveries[i].attempt};
        if (i == 3) settlement.action = SettleAction::kPutBack;
        if (i == 4) settlement.delay_us = 3'600 * kSecond;
        if (i >= 4) settlement.action = SettleAction::kNack;
        SettleOne(settlement);
      }
    }
    const auto member = (*group)->Join(100, [] {});
    const GroupChunk chunk =
        member->Take(store_.clock().NowUs(), 2, int64_t{1} << 20);
    Expect(chunk.deliveries.size() == 2);
    for (const Delivery& delivery : chunk.deliveries) {
      SettleOne({delivery.event_id, delivery.attempt, SettleAction::kNack});
    }
    store_.AdvanceBy(0);
    Expect(Await([&] { return letters() == 2; }));
  }
  void SettleOne(const Settlement& settlement) {
    SettleResult result;
    absl::Notification done;
    store_.store().Settle({"sessions", "workers"}, {&settlement, 1},
                          {&result, 1}, [&](const absl::Status& status) {
                            Expect(status.ok());
                            done.Notify();
                          });
    done.WaitForNotification();
    Expect(result.status.ok());
  }
  uint64_t letters() {
    const auto group = store_.map("sessions")->groups().Find("workers");
    return (*group)->GetStatistics().dead_lettered;
  }

  void MakeCheckpoint() {
    Expect(Await([&] {
      store_.checkpointer().Look();
      return store_.checkpointer().GetStatistics().rounds > 0;
    }));
  }

  void Evict() {
    for (int i = 0; i < 5; ++i) {
      Do("small", Operation::Put(absl::StrCat("key", i), "value"));
      store_.AdvanceBy(kSecond);
    }
  }

  void ChangeValues() {
    for (int i = 0; i < 3; ++i) {
      Do("sessions", Operation::Append("log", absl::StrCat("line ", i, ";")));
      Do("sessions", Operation::Combine("count", Combination::kAdd, 40 + i));
    }
    const auto gather = [&](absl::string_view key, absl::string_view part,
                            int64_t expected) {
      Gathering gathering;
      Expect(gathering.Set(part, expected, {}).ok());
      Do("sessions", Operation::Gather(key, &gathering, "of its own"));
    };
    gather("whole", "one", 2);
    gather("whole", "two", 2);
    gather("half", "one", 2);
    // What is there already is appended to as well.
    Do("sessions", Operation::Append("second-overwritten", " and longer"));
  }

  void Restart(int64_t downtime_us) {
    store_.Close();
    store_.clock().AdvanceBy(downtime_us);
    Expect(store_.Open().ok());
  }

  void Pause() {
    NamespaceOptions options = DurableOptions(NamespaceDurability::kAsync);
    options.restart_policy = RestartPolicy::kPause;
    Expect(store_.Create("paused", options).ok());
    Do("paused", Operation::Put("presence", "here"));
    store_.AdvanceBy(kSecond);
    Restart(20 * kSecond);
    Expect(store_.Get("paused", "presence") == "here");
    Do("paused", Operation::Append("presence", " again"));
  }

  const Filling filling_;
  DurableStore& store_;
  bool good_ = true;
};

// --- What is seen of it.

std::string Text(absl::string_view bytes) {
  return absl::StrCat("\"", absl::CHexEscape(bytes), "\"");
}

std::string TextOf(const NamespaceOptions& o) {
  return absl::StrCat(
      " ttl ", o.ttl_us, " buckets ", o.num_buckets, " max ttl ", o.max_ttl_us,
      " sliding ", o.sliding, " entries ", o.max_entries, " bytes ",
      o.max_bytes, " policy ", static_cast<int>(o.limit_policy), " value ",
      o.max_value_bytes, " retention ", o.retention_us, " ", o.retention_bytes,
      " shards ", o.num_shards, " letters ", Text(o.dead_letter_namespace),
      " rate ", o.max_operations_per_second, " backlog ", o.max_backlog_bytes,
      " unused groups ", o.unused_group_ttl_us, " durability ",
      static_cast<int>(o.durability));
}

std::vector<std::string> Entries(TimeCacheMap* map, int64_t now_us) {
  // By key.
  std::map<std::string, std::string> entries;
  ScanPosition place;
  const auto visit = [&](const EntryView& entry) {
    entries[std::string(entry.key)] = absl::StrCat(
        "entry ", Text(entry.key), " ", Text(entry.value), " version ",
        entry.version, " put ", entry.put_us, " deadline ", entry.deadline_us);
  };
  while (map->Scan("", now_us, 100, 1 << 20, &place, visit)) {
  }
  std::vector<std::string> lines;
  for (auto& [key, line] : entries) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> Events(TimeCacheMap* map, int64_t now_us) {
  const auto cursor =
      map->Subscribe(ExpiryLog::Start::kEarliest, now_us, [] {});
  const Reading reading = ReadAll(cursor.get());
  std::vector<std::string> lines = {
      absl::StrCat("events from ", map->first_event(), " watermark ",
                   reading.watermark_us, " lost ", reading.lost)};
  for (const DeliveredEvent& event : reading.events) {
    lines.push_back(absl::StrCat(
        "event ", Text(event.key), " ", Text(event.value), " version ",
        event.version, " put ", event.put_us, " deadline ", event.deadline_us,
        " death ", event.death_us, " cause ", static_cast<int>(event.cause)));
  }
  return lines;
}

std::vector<std::string> Groups(TimeCacheMap* map, int64_t now_us) {
  std::vector<std::string> lines;
  for (const auto& group : map->groups().List()) {
    const GroupOptions o = group->options();
    const GroupStatistics s = group->GetStatistics();
    lines.push_back(absl::StrCat(
        "group ", group->name(), " by ", group->created_by(), " timeout ",
        o.ack_timeout_us, " attempts ", o.max_attempts, " backlog ",
        o.max_backlog_bytes, " unused ", o.unused_ttl_us, ": ", s.events,
        " events, backlog ", s.backlog, ", acked ", s.acked, ", nacked ",
        s.nacked, ", put back ", s.put_back, ", dead-lettered ",
        s.dead_lettered, ", lost ", s.lost));
    const auto member = group->Join(1'000, [] {});
    const GroupChunk chunk = member->Take(now_us, 1'000, 1 << 20);
    for (const Delivery& delivery : chunk.deliveries) {
      lines.push_back(absl::StrCat(
          "delivery ", delivery.event_id, " attempt ", delivery.attempt, " ",
          Text(delivery.event().key), " ", Text(delivery.event().value)));
    }
  }
  return lines;
}

}  // namespace

bool FillStore(Filling filling, DurableStore* store) {
  return Filler(filling, store).Run();
}

std::string DescribeStore(DurableStore* store) {
  const int64_t now_us = store->clock().NowUs();
  std::map<std::string, std::shared_ptr<TimeCacheMap>> maps;
  for (const auto& map : store->registry().List()) maps[map->name()] = map;
  std::string text;
  for (const auto& [name, map] : maps) {
    absl::StrAppend(&text, "namespace ", name, " log ", map->origin().log_id,
                    TextOf(map->options()), "\n");
    for (const auto& lines :
         {Entries(map.get(), now_us), Events(map.get(), now_us),
          Groups(map.get(), now_us)}) {
      for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
    }
  }
  return text;
}

}  // namespace timecache::server
