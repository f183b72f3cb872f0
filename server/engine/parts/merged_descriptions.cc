#include "server/engine/parts/merged_descriptions.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace timecache::server {

NamespaceInfo MergeInfos(std::vector<NamespaceInfo> partitions) {
  NamespaceInfo& first = partitions.front();
  if (first.statistics != nullptr) {
    NamespaceStatistics all = *first.statistics;
    for (size_t i = 1; i < partitions.size(); ++i) {
      all.AddPartition(*partitions[i].statistics);
    }
    first.statistics = std::make_unique<const NamespaceStatistics>(all);
  }
  return std::move(first);
}

std::optional<DeathsQuery> CommonBars(
    const DeathsQuery& query, const std::vector<DeathsAhead>& partitions) {
  DeathsQuery common = query;
  common.within_us = 0;
  common.begin_us = kNeverUs;
  for (const DeathsAhead& each : partitions) {
    if (each.bars.empty()) continue;
    const auto bars = static_cast<int64_t>(each.bars.size());
    common.begin_us = std::min(common.begin_us, each.begin_us);
    common.end_us = std::max(common.end_us, each.begin_us + bars * each.bar_us);
  }
  if (common.end_us == 0) return std::nullopt;
  // Where something dies later, the bars go on to the end of the time asked for.
  for (const DeathsAhead& each : partitions) {
    if (query.within_us == 0 || each.later.entries == 0) continue;
    common.end_us = std::max(common.end_us, each.now_us + query.within_us);
  }
  return common;
}

DeathsAhead MergeDeaths(const std::vector<DeathsAhead>& partitions) {
  DeathsAhead all = partitions.front();
  const auto add = [](const DeathsAhead::Amount& more,
                      DeathsAhead::Amount* to) {
    to->entries += more.entries;
    to->bytes += more.bytes;
  };
  for (size_t i = 1; i < partitions.size(); ++i) {
    const DeathsAhead& each = partitions[i];
    all.now_us = std::max(all.now_us, each.now_us);
    add(each.later, &all.later);
    for (size_t bar = 0; bar < each.bars.size(); ++bar) {
      // An update of the options between the answers leaves others, by which the
      // last ones are later.
      add(each.bars[bar], bar < all.bars.size() ? &all.bars[bar] : &all.later);
    }
  }
  return all;
}

HotKeys MergeHotKeys(std::vector<HotKeys> partitions, size_t max_keys) {
  HotKeys all;
  for (HotKeys& each : partitions) {
    all.window_us = std::max(all.window_us, each.window_us);
    all.sampled += each.sampled;
    all.operations_per_second += each.operations_per_second;
    std::move(each.keys.begin(), each.keys.end(), std::back_inserter(all.keys));
  }
  const auto rate = [](const HotKeys::Key& key) {
    return key.reads_per_second + key.writes_per_second;
  };
  std::sort(all.keys.begin(), all.keys.end(),
            [&](const HotKeys::Key& a, const HotKeys::Key& b) {
              if (rate(a) != rate(b)) return rate(a) > rate(b);
              return a.key < b.key;
            });
  if (all.keys.size() > max_keys) all.keys.resize(max_keys);
  return all;
}

}  // namespace timecache::server
