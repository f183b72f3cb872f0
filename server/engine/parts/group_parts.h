// What the parts of a consumer group, one in each partition, are together.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_GROUP_PARTS_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_GROUP_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// Adds those of another part. Members are members of all parts.
void AddTo(const GroupStatistics& other, GroupStatistics* sum);

// One of each member, the oldest first: with what it holds in all parts.
std::vector<MemberInfo> MergeMemberInfos(
    absl::Span<const std::vector<MemberInfo>> parts);

// About what an event takes in a page of unsettled ones.
int64_t PageBytes(const UnsettledPage& page, bool include_values);

// The settlements of one partition, and where they stand among all.
struct SettlementsOfPart {
  std::vector<Settlement> settlements;
  std::vector<SettleResult> results;
  std::vector<size_t> places;
};
// One of each partition; those of partitions that are not there are partition
// 0's, whose group refuses them.
std::vector<SettlementsOfPart> SplitSettlements(
    absl::Span<const Settlement> settlements, size_t partitions);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_GROUP_PARTS_H_
