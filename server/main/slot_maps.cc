#include "server/main/slot_maps.h"

#include <string>

#include "server/main/server_setup.h"
#include "server/ops/log.h"

namespace timecache::server {

absl::StatusOr<std::unique_ptr<SlotMaps>> SlotMaps::Open(
    const config::v1::ServerConfig& config, Cluster* cluster, int slot,
    std::shared_ptr<ServerAccount> account, std::function<void()> wake) {
  auto term = ClusterTerm::Begin(cluster, slot, std::move(wake));
  if (!term.ok()) return term.status();
  return std::unique_ptr<SlotMaps>(
      new SlotMaps(config, *std::move(term), std::move(account)));
}

SlotMaps::SlotMaps(const config::v1::ServerConfig& config,
                   std::unique_ptr<ClusterTerm> term_of_slot,
                   std::shared_ptr<ServerAccount> account)
    : clock(StallGraceUs(config)),
      term(std::move(term_of_slot)),
      logs(term->TakeLogs()),
      reaper(&clock, LogSlowSweep),
      registry(&clock, &reaper, std::move(account)),
      store(&registry, &clock, LocalStore::Names::kAddresses) {
  registry.SetChangeLogs(logs.get());
}

}  // namespace timecache::server
