#include "server/main/startup_checks.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

using Warnings = std::vector<StartupWarning>;

void CheckOpenFiles(const Machine& machine,
                    const config::v1::ServerConfig& config,
                    Warnings* warnings) {
  const int64_t needed =
      int64_t{config.limits().max_connections()} + kReservedFiles;
  if (machine.open_files == 0 || machine.open_files >= needed) return;
  warnings->push_back(
      {"open_files_low",
       absl::StrCat("limits.max_connections of ",
                    config.limits().max_connections(), " needs ", needed,
                    " open files, and ", machine.open_files,
                    " are allowed: raise it (LimitNOFILE= of the systemd unit, "
                    "ulimit -Hn, --ulimit nofile= of the container), or lower "
                    "limits.max_connections")});
}

void CheckClock(const Machine& machine, Warnings* warnings) {
  if (machine.now_us >= kEarliestTimeUs && machine.now_us <= kLatestTimeUs) {
    return;
  }
  warnings->push_back(
      {"clock_wrong",
       absl::StrCat("the wall clock says ",
                    absl::FormatTime(absl::FromUnixMicros(machine.now_us),
                                     absl::UTCTimeZone()),
                    ": deadlines and certificates go by it; set it, and keep "
                    "it with NTP")});
}

void CheckMemory(const Machine& machine, const config::v1::ServerConfig& config,
                 Warnings* warnings) {
  const auto memory = static_cast<uint64_t>(machine.memory_bytes());
  const uint64_t max_memory = config.limits().max_memory_bytes();
  if (memory > 0 && max_memory > memory) {
    warnings->push_back(
        {"memory_low",
         absl::StrCat("limits.max_memory_bytes is ", max_memory,
                      ", and this process gets ", memory,
                      " bytes: it would be killed before it refuses puts; "
                      "lower the limit, or give it more memory")});
  }
  const uint64_t budget = max_memory > 0 ? max_memory : memory;
  uint64_t retained = 0;
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    retained += from.options().event_retention_bytes();
  }
  if (budget > 0 && retained > budget) {
    warnings->push_back(
        {"event_retention_high",
         absl::StrCat("the namespaces' event_retention_bytes add up to ",
                      retained, ", more than the memory there is, ", budget,
                      " bytes: events give way to entries before that, and are "
                      "retained for less; lower event_retention_bytes")});
  }
}

bool IsDurable(const config::v1::NamespaceConfig& from) {
  return from.options().durability() >= v1::DURABILITY_ASYNC;
}

void CheckDeadLetters(const config::v1::ServerConfig& config,
                      Warnings* warnings) {
  absl::flat_hash_map<std::string, v1::Durability> durability;
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    durability[from.name()] = from.options().durability();
  }
  for (const config::v1::NamespaceConfig& from : config.namespaces()) {
    const auto letters =
        durability.find(from.options().dead_letter_namespace());
    if (!IsDurable(from) || letters == durability.end() ||
        letters->second >= from.options().durability()) {
      continue;
    }
    warnings->push_back(
        {"dead_letters_not_durable",
         absl::StrCat("the dead letters of namespace ", from.name(), " go to ",
                      letters->first,
                      ", which is less durable: a crash takes letters whose "
                      "events are settled; give it the same durability")});
  }
}

}  // namespace

Warnings CheckStartup(const Machine& machine,
                      const config::v1::ServerConfig& config) {
  Warnings warnings;
  CheckOpenFiles(machine, config, &warnings);
  CheckClock(machine, &warnings);
  CheckMemory(machine, config, &warnings);
  CheckDeadLetters(config, &warnings);
  return warnings;
}

void LogStartupChecks(const Machine& machine,
                      const config::v1::ServerConfig& config) {
  Log(LogLevel::kInfo, "machine",
      {{"cores", machine.cores},
       {"cpu_quota_cores", machine.cpu_quota_cores},
       {"memory_bytes", machine.memory_bytes()},
       {"open_files", machine.open_files},
       {"transparent_huge_pages", machine.transparent_huge_pages}});
  for (const StartupWarning& warning : CheckStartup(machine, config)) {
    Log(LogLevel::kWarning, warning.event, {{"about", warning.about}});
  }
}

}  // namespace timecache::server
