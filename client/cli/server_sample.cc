#include "client/cli/server_sample.h"

#include <algorithm>

namespace timecache::cli {

absl::StatusOr<ServerSample> TakeSample(const Client& client) {
  ServerSample sample;
  auto namespaces = client.ListNamespaces({.include_statistics = true});
  if (!namespaces.ok()) return namespaces.status();
  sample.namespaces = *std::move(namespaces);
  const size_t asked = std::min(sample.namespaces.size(), kMaxGroupNamespaces);
  for (size_t i = 0; i < asked; ++i) {
    auto groups = client.In(sample.namespaces[i].name)
                      .ListGroups({.include_statistics = true});
    // Not to be seen, or deleted meanwhile.
    if (absl::IsPermissionDenied(groups.status()) ||
        absl::IsNotFound(groups.status())) {
      continue;
    }
    if (!groups.ok()) return groups.status();
    sample.groups.insert(sample.groups.end(), groups->begin(), groups->end());
  }
  // Last: any node of a cluster answers it, and by now the owner is known.
  auto server = client.GetServer();
  if (!server.ok()) return server.status();
  sample.server = *std::move(server);
  return sample;
}

Rates RatesOf(const ServerSample& before, const ServerSample& now,
              const Namespace& ns) {
  const auto old = std::find_if(
      before.namespaces.begin(), before.namespaces.end(),
      [&ns](const Namespace& each) { return each.name == ns.name; });
  const double seconds =
      absl::ToDoubleSeconds(now.server.now - before.server.now);
  Rates rates;
  if (old == before.namespaces.end() || seconds <= 0) return rates;
  const auto a = old->statistics.value_or(NamespaceStatistics());
  const auto b = ns.statistics.value_or(NamespaceStatistics());
  // A counter that went back is that of another namespace of this name.
  const auto rate = [seconds](uint64_t from, uint64_t to) {
    return to <= from ? 0 : static_cast<double>(to - from) / seconds;
  };
  rates.puts = rate(a.puts, b.puts);
  rates.hits = rate(a.hits, b.hits);
  rates.misses = rate(a.misses, b.misses);
  rates.deaths = rate(a.expired + a.evicted + a.rotated,
                      b.expired + b.evicted + b.rotated);
  return rates;
}

void AddHotKeys(const Client& client, const ServerSample& before,
                ServerSample* sample) {
  constexpr uint32_t kShown = 5;
  double most = 0;
  const Namespace* busiest = nullptr;
  for (const Namespace& ns : sample->namespaces) {
    const double operations = RatesOf(before, *sample, ns).operations();
    if (operations <= most) continue;
    most = operations;
    busiest = &ns;
  }
  if (busiest == nullptr) return;
  auto hot = client.GetHotKeys(busiest->name, kShown);
  if (!hot.ok()) return;
  sample->hot = *std::move(hot);
  sample->hot_namespace = busiest->name;
}

JournalRates JournalRatesOf(const ServerSample* before,
                            const ServerSample& now) {
  JournalRates rates;
  if (!now.server.journal) return rates;
  const JournalStatus& b = *now.server.journal;
  const bool same = before != nullptr && before->server.journal &&
                    before->server.start_time == now.server.start_time;
  const JournalStatus a = same ? *before->server.journal : JournalStatus();
  const auto commits = static_cast<double>(b.commits - a.commits);
  const auto bytes = static_cast<double>(b.written_bytes - a.written_bytes);
  const double seconds =
      same ? absl::ToDoubleSeconds(now.server.now - before->server.now) : 0;
  if (seconds > 0) {
    rates.commits_per_second = commits / seconds;
    rates.bytes_per_second = bytes / seconds;
  }
  if (commits > 0) {
    rates.commit = (b.commit_time - a.commit_time) / commits;
    rates.group_appends = static_cast<double>(b.appends - a.appends) / commits;
    rates.group_bytes = bytes / commits;
  }
  return rates;
}

absl::Duration LagOf(const ServerSample& sample, const Group& group) {
  if (!group.statistics || !group.statistics->oldest_unsettled) {
    return absl::ZeroDuration();
  }
  return std::max(sample.server.now - *group.statistics->oldest_unsettled,
                  absl::ZeroDuration());
}

}  // namespace timecache::cli
