#include "tests/support/journal/durable_store.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/partitioned_maps.h"
#include "server/log/local/journal_tools.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {

NamespaceOptions DurableOptions(NamespaceDurability durability) {
  NamespaceOptions options;
  options.ttl_us = 60 * kSecond;
  options.num_buckets = 61;
  options.num_shards = 4;
  options.retention_us = 3600 * kSecond;
  options.durability = durability;
  return options;
}

DurableStore::Engine::Engine(const Clock* clock,
                             std::unique_ptr<Journal> journal)
    : logs(std::make_unique<MapChangeLogs>(std::move(journal))),
      reaper(clock),
      registry(clock, &reaper, RegistryLimits()),
      maps(&registry, clock),
      store(&maps, &registry) {
  registry.SetChangeLogs(logs.get());
}

DurableStore::Engine::~Engine() = default;

DurableStore::DurableStore() : directory_(kTestDirectory) {
  recovery_options_.threads = 2;
  options_.partitions = 4;
  options_.boot_id = "boot 0";
  options_.segment_bytes = 64 << 10;
  options_.files = files_.get();
  options_.on_failure = [](const std::string& line) { ADD_FAILURE() << line; };
}

DurableStore::~DurableStore() { Close(); }

absl::Status DurableStore::Open() {
  Close();
  auto journal = LocalJournal::Open(directory_, options_);
  if (!journal.ok()) return journal.status();
  engine_ = std::make_unique<Engine>(&clock_, *std::move(journal));
  auto* const local = static_cast<LocalJournal*>(&engine_->logs->journal());
  recovery_options_.copied = local->copied();
  recovery_options_.may_have_lost_power = local->may_have_lost_power();
  recovery_options_.clock = &clock_;
  const auto report =
      RecoverMaps(engine_->logs.get(), &engine_->registry, recovery_options_);
  if (!report.ok()) return report.status();
  absl::Status status = ReconcilePartitions(&engine_->registry);
  if (!status.ok()) return status;
  if (notes_) {
    status = local->NoteRecovered();
    if (!status.ok()) return status;
  }
  report_ = *report;
  engine_->checkpointer = std::make_unique<Checkpointer>(
      engine_->logs.get(), &engine_->registry, &clock_, checkpointer_options_);
  return absl::OkStatus();
}

void DurableStore::Freeze(MemoryFileSystem::Unsynced unsynced,
                          std::mt19937_64* random) {
  frozen_ = files_->CopyWithoutPower(unsynced, random);
  options_.boot_id = absl::StrCat("boot ", ++boots_);
}

void DurableStore::Close() { engine_ = nullptr; }

void DurableStore::GoOnWith(std::unique_ptr<MemoryFileSystem> files) {
  // What closing writes goes to a disk that is gone.
  Close();
  files_ = std::move(files);
  options_.files = files_.get();
}

std::string DurableStore::BackUp() {
  return ArchiveOf(static_cast<LocalJournal*>(&journal()));
}

absl::Status DurableStore::Restore(const std::string& archive) {
  GoOnWith(std::make_unique<MemoryFileSystem>());
  return Unpack(archive, files_.get(), kTestDirectory);
}

void DurableStore::Crash() {
  Freeze();
  Thaw();
}

void DurableStore::LosePower(MemoryFileSystem::Unsynced unsynced,
                             std::mt19937_64* random) {
  Freeze(unsynced, random);
  Thaw();
}

absl::Status DurableStore::Salvage() {
  Close();
  const std::string to = directory_ + "_salvaged";
  const auto report = SalvageJournal(files_.get(), directory_, to);
  if (!report.ok()) return report.status();
  auto files = std::make_unique<MemoryFileSystem>();
  for (const std::string& path : files_->Paths()) {
    if (!absl::StartsWith(path, to)) continue;
    files->SetContents(directory_ + path.substr(to.size()),
                       files_->Contents(path));
  }
  GoOnWith(std::move(files));
  return absl::OkStatus();
}

void DurableStore::AdvanceBy(int64_t step_us) {
  clock_.AdvanceBy(step_us);
  engine_->reaper.Flush();
}

std::shared_ptr<TimeCacheMap> DurableStore::map(absl::string_view name) {
  auto map = registry().Find(name);
  return map.ok() ? *std::move(map) : nullptr;
}

LogPoint DurableStore::End(absl::string_view name) {
  const auto cursor =
      map(name)->Subscribe(ExpiryLog::Start::kEarliest, clock_.NowUs(), [] {});
  LogPoint point;
  for (bool more = true; more;) {
    const EventChunk chunk = cursor->Read(1 << 20);
    point = chunk.point;
    more = chunk.more;
  }
  return point;
}

absl::Status DurableStore::Create(absl::string_view name,
                                  const NamespaceOptions& options) {
  absl::Status created;
  absl::Notification done;
  store().CreateNamespace(name, options,
                          [&](const absl::StatusOr<NamespaceInfo>& info) {
                            created = info.status();
                            done.Notify();
                          });
  done.WaitForNotification();
  return created;
}

Result DurableStore::Execute(absl::string_view name,
                             const Operation& operation) {
  Result result;
  absl::Notification done;
  store().Execute(name, {&operation, 1}, {&result, 1},
                  [&](const absl::Status& status) {
                    if (!status.ok()) result.status = status;
                    done.Notify();
                  });
  done.WaitForNotification();
  return result;
}

std::string DurableStore::Get(absl::string_view name, absl::string_view key) {
  const Result result = Execute(name, Operation::Get(key));
  if (!result.status.ok()) return result.status.ToString();
  return result.found ? result.entry.value : "(none)";
}

}  // namespace timecache::server
