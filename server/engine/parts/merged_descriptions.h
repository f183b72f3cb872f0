// What partitions say of themselves, as a namespace says it.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_MERGED_DESCRIPTIONS_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_MERGED_DESCRIPTIONS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "server/engine/store/deaths_ahead.h"
#include "server/engine/store/hot_keys.h"
#include "server/engine/store/store_types.h"

namespace timecache::server {

// The description of the first, with the statistics of all. Not empty; all have
// statistics, or none.
NamespaceInfo MergeInfos(std::vector<NamespaceInfo> partitions);

// `query` for bars that all partitions have in common, by what each answers to it
// with a single bar; none if nothing dies in them.
std::optional<DeathsQuery> CommonBars(
    const DeathsQuery& query, const std::vector<DeathsAhead>& partitions);

// The sums; of answers to a query of CommonBars, or of such without bars. Not empty.
DeathsAhead MergeDeaths(const std::vector<DeathsAhead>& partitions);

// The keys that are used most in all. Not empty.
HotKeys MergeHotKeys(std::vector<HotKeys> partitions, size_t max_keys);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_MERGED_DESCRIPTIONS_H_
