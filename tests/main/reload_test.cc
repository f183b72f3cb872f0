#include "server/main/reload.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "server/main/config/configured_namespaces.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class ReloadTest : public ::testing::Test {
 protected:
  ReloadTest() { SetLogging(LogLevel::kInfo, LogFormat::kText); }

  static config::v1::ServerConfig Parse(const std::string& yaml) {
    return ParseConfig(yaml, "file.yaml").value();
  }
  // Runs a reload of this file, and returns what is logged.
  std::string Run(const std::string& yaml) {
    yaml_ = yaml;
    CaptureStderr();
    ok_ = reload_.Run();
    return GetCapturedStderr();
  }

  std::string yaml_;
  bool ok_ = false;
  Reload reload_{Parse(""), [this] { return ParseConfig(yaml_, "file.yaml"); }};
};

TEST_F(ReloadTest, NothingNewIsNothingToDo) {
  const std::string log = Run("");
  EXPECT_THAT(log, AllOf(HasSubstr(" info  config_reloaded applied=none "
                                   "needs_restart=none failed=none")));
  EXPECT_TRUE(ok_);
  EXPECT_EQ(reload_.state().succeeded, 1u);
}

TEST_F(ReloadTest, AChangedFieldGoesToItsApplier) {
  std::vector<int64_t> told;
  reload_.Apply("grace_period", [&](const config::v1::ServerConfig& now) {
    told.push_back(now.grace_period().seconds());
  });
  reload_.Apply("limits.max_watchers",
                [](const config::v1::ServerConfig& before,
                   const config::v1::ServerConfig& now) {
                  EXPECT_EQ(before.limits().max_watchers(), 10'000u);
                  EXPECT_EQ(now.limits().max_watchers(), 7u);
                  return absl::OkStatus();
                });
  EXPECT_THAT(Run("grace_period: 3s\nlimits:\n  max_watchers: 7\n"),
              HasSubstr("applied=limits.max_watchers,grace_period "));
  EXPECT_THAT(told, ElementsAre(3));
  EXPECT_EQ(reload_.config().grace_period().seconds(), 3);
  EXPECT_EQ(reload_.config().limits().max_watchers(), 7u);
  // It is in force now.
  Run("grace_period: 3s\nlimits:\n  max_watchers: 7\n");
  EXPECT_THAT(told, ElementsAre(3));
  // A line that is gone is the default again.
  Run("limits:\n  max_watchers: 7\n");
  EXPECT_THAT(told, ElementsAre(3, 10));
}

TEST_F(ReloadTest, AnApplierOfASectionStandsForAllInIt) {
  int calls = 0;
  reload_.Apply("log", [&](const config::v1::ServerConfig&) { ++calls; });
  EXPECT_THAT(Run("log:\n  level: debug\n  format: json\n"),
              HasSubstr("applied=log needs"));
  EXPECT_EQ(calls, 1);
}

TEST_F(ReloadTest, WhatHasNoApplierNeedsARestartUntilItIsTakenBack) {
  const std::string yaml =
      "listeners:\n  - address: 127.0.0.1:9\nlimits:\n  max_watchers: 7\n";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run(yaml),
                HasSubstr(" warn  config_reloaded applied=none "
                          "needs_restart=listeners,limits.max_watchers"));
    EXPECT_TRUE(ok_);
    EXPECT_EQ(reload_.config().listeners(0).address(), "127.0.0.1:7171");
    EXPECT_EQ(reload_.config().limits().max_watchers(), 10'000u);
  }
  EXPECT_THAT(Run(""), HasSubstr("needs_restart=none"));
}

TEST_F(ReloadTest, AWrongFileChangesNothingAndSaysWhere) {
  int calls = 0;
  int checks = 0;
  reload_.Apply("grace_period",
                [&](const config::v1::ServerConfig&) { ++calls; });
  reload_.Also([&] { ++checks; });
  const std::string log = Run("grace_period: 1s\nlog:\n  level: loud\n");
  EXPECT_THAT(log, AllOf(HasSubstr("error config_refused"),
                         HasSubstr("file.yaml:3: log.level"),
                         Not(HasSubstr("config_reloaded"))));
  EXPECT_FALSE(ok_);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(checks, 1);
  EXPECT_EQ(reload_.config().grace_period().seconds(), 10);
  ReloadState state = reload_.state();
  EXPECT_FALSE(state.ok);
  EXPECT_EQ(state.failed, 1u);
  const int64_t loaded_at_us = state.loaded_at_us;
  Run("");
  state = reload_.state();
  EXPECT_TRUE(state.ok);
  EXPECT_GE(state.loaded_at_us, loaded_at_us);
}

TEST_F(ReloadTest, WhatAnApplierRefusesIsTriedAgain) {
  absl::Status answer = absl::FailedPreconditionError("not now");
  reload_.Apply("grace_period",
                [&](const config::v1::ServerConfig&,
                    const config::v1::ServerConfig&) { return answer; });
  EXPECT_THAT(Run("grace_period: 1s\n"),
              HasSubstr("failed=\"grace_period (not now)\""));
  EXPECT_FALSE(ok_);
  EXPECT_EQ(reload_.config().grace_period().seconds(), 10);
  answer = absl::OkStatus();
  EXPECT_THAT(Run("grace_period: 1s\n"), HasSubstr("applied=grace_period"));
  EXPECT_EQ(reload_.config().grace_period().seconds(), 1);
}

class ReloadNamespacesTest : public ::testing::Test {
 protected:
  ReloadNamespacesTest() {
    SetLogging(LogLevel::kInfo, LogFormat::kText);
    EXPECT_TRUE(CreateNamespaces(config_, &registry_).ok());
  }

  // Reloads this, and returns what is logged.
  std::string Reload(const std::string& yaml) {
    const config::v1::ServerConfig now = ParseConfig(yaml, "file.yaml").value();
    CaptureStderr();
    status_ = ReloadNamespaces(config_, now, &registry_);
    if (status_.ok()) config_ = now;
    return GetCapturedStderr();
  }
  NamespaceOptions OptionsOf(const std::string& name) {
    return registry_.Find(name).value()->options();
  }

  config::v1::ServerConfig config_ =
      ParseConfig(
          "namespaces:\n  - name: a\n    options:\n      ttl: 10s\n"
          "      max_entries: 5\n  - name: b\n",
          "file.yaml")
          .value();
  ManualClock clock_;
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  absl::Status status_;
};

TEST_F(ReloadNamespacesTest, MakesNewOnesAndKeepsThoseThatAreGone) {
  const std::string log = Reload(
      "namespaces:\n  - name: b\n  - name: c\n    options:\n"
      "      ttl: 1s\n");
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(log, AllOf(HasSubstr("namespace_created namespace=c"),
                         HasSubstr("namespace_kept namespace=a"),
                         HasSubstr("timecachectl ns delete a"),
                         Not(HasSubstr("namespace=b"))));
  EXPECT_EQ(OptionsOf("c").ttl_us, 1'000'000);
  EXPECT_EQ(OptionsOf("a").ttl_us, 10'000'000);
}

TEST_F(ReloadNamespacesTest, ChangesWhatTheFileChangedAndNothingElse) {
  // By somebody at run time.
  ASSERT_TRUE(registry_
                  .Update("a",
                          [](NamespaceOptions* options) {
                            options->max_bytes = 1000;
                            options->ttl_us = 20'000'000;
                            return absl::OkStatus();
                          })
                  .ok());
  // max_entries goes back to its default; ttl is as it was in the file.
  Reload(
      "namespaces:\n  - name: a\n    options:\n      ttl: 10s\n"
      "      sliding: true\n  - name: b\n");
  EXPECT_TRUE(status_.ok()) << status_;
  const NamespaceOptions options = OptionsOf("a");
  EXPECT_TRUE(options.sliding);
  EXPECT_EQ(options.max_entries, 0);
  EXPECT_EQ(options.max_bytes, 1000);
  EXPECT_EQ(options.ttl_us, 20'000'000);
}

TEST_F(ReloadNamespacesTest, OneThatIsThereAlreadyGetsTheOptionsThatAreSet) {
  NamespaceOptions options;
  options.max_entries = 9;
  ASSERT_TRUE(registry_.Create("made", options).ok());
  Reload(
      "namespaces:\n  - name: a\n    options:\n      ttl: 10s\n"
      "      max_entries: 5\n  - name: b\n"
      "  - name: made\n    options:\n      ttl: 1s\n");
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(OptionsOf("made").ttl_us, 1'000'000);
  EXPECT_EQ(OptionsOf("made").max_entries, 9);
}

TEST_F(ReloadNamespacesTest, ReachesAllPartitions) {
  constexpr char kFile[] =
      "default_partitions: 5\nnamespaces:\n  - name: a\n    options:\n"
      "      ttl: 10s\n      max_entries: 5\n  - name: b\n"
      "  - name: parts\n    options:\n      num_partitions: 3\n";
  Reload(kFile);
  EXPECT_TRUE(status_.ok()) << status_;
  for (const char* map : {"parts", "parts#1", "parts#2"}) {
    EXPECT_EQ(OptionsOf(map).num_partitions, 3);
  }
  Reload(absl::StrCat(kFile, "      max_bytes: 9\n"));
  EXPECT_TRUE(status_.ok()) << status_;
  for (const char* map : {"parts", "parts#1", "parts#2"}) {
    EXPECT_EQ(OptionsOf(map).max_bytes, 9);
  }
  // Of those that are there it changes nothing.
  EXPECT_EQ(OptionsOf("b").num_partitions, 1);
  Reload(absl::StrCat(kFile, "  - name: new\n"));
  EXPECT_EQ(OptionsOf("new").num_partitions, 5);
  EXPECT_TRUE(registry_.Find("new#4").ok());
}

TEST_F(ReloadNamespacesTest, GoesOnBehindOneThatCannotChange) {
  const std::string log = Reload(
      "namespaces:\n  - name: a\n    options:\n      ttl: 10s\n"
      "      max_entries: 5\n      num_shards: 1\n  - name: b\n"
      "  - name: c\n");
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("is fixed at creation, to 16"));
  EXPECT_THAT(log, AllOf(HasSubstr("namespace_not_reloaded namespace=a"),
                         HasSubstr("namespace_created namespace=c")));
  EXPECT_EQ(OptionsOf("a").num_shards, 16);
}

TEST_F(ReloadNamespacesTest, OneInMemoryDoesNotBecomeDurable) {
  const std::string log = Reload(
      "journal: {directory: d}\nnamespaces:\n  - name: a\n    options:\n"
      "      ttl: 10s\n      max_entries: 5\n      durability: sync\n"
      "  - name: b\n");
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("durability is fixed at creation, to memory"));
  EXPECT_THAT(log, HasSubstr("namespace_not_reloaded namespace=a"));
  EXPECT_EQ(OptionsOf("a").durability, NamespaceDurability::kMemory);
}

// Each makes the maps of its slot; what was done is logged once.
TEST(ReloadNamespacesOfSlotsTest, EachDoesItsPart) {
  SetLogging(LogLevel::kInfo, LogFormat::kText);
  constexpr char kFile[] =
      "namespaces:\n  - name: one\n  - name: parts\n    options:\n"
      "      num_partitions: 7\n";
  const config::v1::ServerConfig config =
      ParseConfig(kFile, "file.yaml").value();
  const config::v1::ServerConfig now =
      ParseConfig(absl::StrCat(kFile, "      ttl: 5s\n  - name: new\n"),
                  "file.yaml")
          .value();
  constexpr uint32_t kSlots = 3;
  ManualClock clock;
  Reaper reaper(&clock);
  int maps = 0;
  std::string log;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const OwnMaps own = {slot, kSlots};
    Registry registry(&clock, &reaper, RegistryLimits());
    registry.LeaveRoutesToCaller();
    ASSERT_TRUE(CreateNamespaces(config, &registry, own).ok());
    // Those that are there are left as they are.
    ASSERT_TRUE(CreateNamespaces(config, &registry, own).ok());
    for (const auto& map : registry.List()) {
      EXPECT_EQ(SlotOfMap(map->name(), kSlots), slot);
      ++maps;
    }
    CaptureStderr();
    EXPECT_TRUE(ReloadNamespaces(config, now, &registry, own).ok());
    log += GetCapturedStderr();
    for (const auto& map : registry.List()) {
      EXPECT_EQ(map->options().ttl_us,
                map->namespace_name() == "parts" ? 5'000'000 : 30'000'000);
    }
    EXPECT_EQ(registry.Find("new").ok(), own.Has("new"));
  }
  EXPECT_EQ(maps, 8);
  const auto count = [&log](absl::string_view event) {
    const std::vector<std::string> parts = absl::StrSplit(log, event);
    return parts.size() - 1;
  };
  EXPECT_EQ(count("namespace_created"), 1u);
  EXPECT_EQ(count("namespace_updated"), 1u);
}

}  // namespace
}  // namespace timecache::server
