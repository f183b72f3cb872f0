// Durable namespaces that earlier versions kept come back for ever, with
// everything in them: namespaces that are full, changed and deleted, entries and
// groups of all states, with and without a checkpoint. What is in testdata is
// never written again.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/log/local/journal_tools.h"
#include "tests/support/journal/durable_store.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

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
    const EventChunk chunk = member->Take(now_us, 1'000, 1 << 20);
    for (const Delivery& delivery : chunk.deliveries) {
      lines.push_back(absl::StrCat(
          "delivery ", delivery.event_id, " attempt ", delivery.attempt, " ",
          Text(delivery.event().key), " ", Text(delivery.event().value)));
    }
  }
  return lines;
}

// Namespaces with their options, entries, events and groups, a line each, in
// an order of their own. Takes the events that a group has for a member and
// gives them back.
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

class MapFormatTest : public ::testing::TestWithParam<std::string> {
 protected:
  MapFormatTest() {
    std::filesystem::copy(source_, journal_,
                          std::filesystem::copy_options::recursive);
    store_.UseDirectory(journal_);
  }
  std::string Expected() const {
    std::ifstream file(source_ + ".txt");
    EXPECT_TRUE(file.is_open()) << source_;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Open() {
    const absl::Status opened = store_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    store_.clock().AdvanceTo(store_.report().last_us);
    store_.AdvanceBy(0);
  }

  const std::string source_ = std::string(JOURNAL_TESTDATA "/") + GetParam();
  TemporaryDirectory directory_;
  const std::string journal_ = directory_.path() + "/journal";
  DurableStore store_;
};

TEST_P(MapFormatTest, AllOfItComesBack) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(DescribeStore(&store_), Expected());
}

TEST_P(MapFormatTest, AllOfItComesBackAfterACrash) {
  std::filesystem::remove(journal_ + "/END");
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(DescribeStore(&store_), Expected());
}

TEST_P(MapFormatTest, ItGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const Result before =
      store_.Execute("sessions", Operation::Get("second-long-lived"));
  ASSERT_TRUE(before.found);
  const Result put = store_.Put("sessions", "second-long-lived", "new");
  ASSERT_TRUE(put.status.ok()) << put.status;
  EXPECT_GT(put.version, before.entry.version);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(store_.Get("sessions", "second-long-lived"), "new");
  EXPECT_EQ(store_.Get("sessions", "second-empty"), "");
}

TEST_P(MapFormatTest, ItIsChecked) {
  const auto report = CheckJournal(FileSystem::Posix(), journal_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->intact) << report->ToString();
}

INSTANTIATE_TEST_SUITE_P(Version1, MapFormatTest,
                         ::testing::Values("v1_maps", "v1_maps_trimmed",
                                           "v1_maps_changed",
                                           "v1_maps_retained"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace timecache::server
