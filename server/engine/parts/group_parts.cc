#include "server/engine/parts/group_parts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace timecache::server {

void AddTo(const GroupStatistics& other, GroupStatistics* sum) {
  using Statistics = GroupStatistics;
  for (uint64_t Statistics::*const count : {&Statistics::events,
                                            &Statistics::backlog,
                                            &Statistics::in_flight,
                                            &Statistics::delivered,
                                            &Statistics::redelivered,
                                            &Statistics::acked,
                                            &Statistics::nacked,
                                            &Statistics::put_back,
                                            &Statistics::timed_out,
                                            &Statistics::dead_lettered,
                                            &Statistics::dead_letter_failures,
                                            &Statistics::dead_letters_denied,
                                            &Statistics::dead_letters_dropped,
                                            &Statistics::lost,
                                            &Statistics::returned,
                                            &Statistics::extended,
                                            &Statistics::suspects,
                                            &Statistics::terminated,
                                            &Statistics::fetched,
                                            &Statistics::moved,
                                            &Statistics::skipped}) {
    sum->*count += other.*count;
  }
  sum->backlog_bytes += other.backlog_bytes;
  sum->in_flight_bytes += other.in_flight_bytes;
  sum->members = std::max(sum->members, other.members);
  sum->unresponsive_members =
      std::max(sum->unresponsive_members, other.unresponsive_members);
  sum->unused_since_us = std::max(sum->unused_since_us, other.unused_since_us);
  sum->oldest_unsettled_us =
      std::min(sum->oldest_unsettled_us, other.oldest_unsettled_us);
}

std::vector<MemberInfo> MergeMemberInfos(
    absl::Span<const std::vector<MemberInfo>> parts) {
  // In the order of ids they are in that of joining.
  std::map<uint64_t, MemberInfo> by_id;
  for (const std::vector<MemberInfo>& part : parts) {
    for (const MemberInfo& member : part) {
      const auto [it, added] = by_id.emplace(member.id, member);
      if (added) continue;
      MemberInfo& sum = it->second;
      sum.in_flight += member.in_flight;
      sum.window = std::min(sum.window, member.window);
      sum.unresponsive |= member.unresponsive;
      sum.active &= member.active;
    }
  }
  std::vector<MemberInfo> members;
  members.reserve(by_id.size());
  for (auto& [id, member] : by_id) members.push_back(std::move(member));
  return members;
}

int64_t PageBytes(const UnsettledPage& page, bool include_values) {
  constexpr int64_t kEventBytes = 160;
  int64_t bytes = 0;
  for (const UnsettledInfo& event : page.events) {
    const EventBatch& batch = *event.delivery.batch;
    const int index = event.delivery.index;
    bytes += kEventBytes +
             static_cast<int64_t>(include_values ? batch.encoded(index).size()
                                                 : batch.key(index).size());
  }
  return bytes;
}

std::vector<SettlementsOfPart> SplitSettlements(
    absl::Span<const Settlement> settlements, size_t partitions) {
  std::vector<SettlementsOfPart> parts(partitions);
  for (size_t i = 0; i < settlements.size(); ++i) {
    const size_t partition = settlements[i].partition;
    SettlementsOfPart& part = parts[partition < partitions ? partition : 0];
    part.settlements.push_back(settlements[i]);
    part.places.push_back(i);
  }
  for (SettlementsOfPart& part : parts) part.results.resize(part.places.size());
  return parts;
}

}  // namespace timecache::server
