#include "server/ops/monitoring.h"

#include <utility>

#include "server/base/version.h"

namespace timecache::server {
namespace {

constexpr MetricInfo kBuild = {"timecache_build_info",
                               "Always 1; the label says the version."};
constexpr MetricInfo kState = {"timecache_server_state",
                               "1 for the state that the process is in."};

}  // namespace

Monitoring::Monitoring(const Registries* registries)
    : engine_(registries),
      http_(&readiness_, [this] { return metrics_.Text(); }) {
  metrics_.Add(kBuild, [] { return 1; }, {{"version", std::string(Version())}});
  for (const auto& [state, name] :
       {std::pair{Readiness::State::kStarting, "starting"},
        std::pair{Readiness::State::kStandby, "standby"},
        std::pair{Readiness::State::kServing, "serving"},
        std::pair{Readiness::State::kDraining, "draining"}}) {
    metrics_.Add(
        kState,
        [this, state = state] { return readiness_.state() == state ? 1 : 0; },
        {{"state", name}});
  }
  metrics_.Add(&calls_);
  metrics_.Add(&engine_);
  metrics_.Add(&process_);
}

absl::Status Monitoring::Start(const std::string& address) {
  return address.empty() ? absl::OkStatus() : http_.Start(address);
}

}  // namespace timecache::server
