#include "client/examples/ten_lines.h"

#include "timecache/status.h"

namespace timecache::examples {

absl::StatusOr<bool> MayCall(const Client& client, const std::string& caller,
                             int64_t limit, absl::Duration window) {
  // The entry keeps the deadline of the first call.
  const auto calls =
      client.Combine("calls/" + caller, Combination::kAdd, 1, {.ttl = window});
  if (!calls.ok()) return calls.status();
  return calls->result <= limit;
}

absl::StatusOr<std::string> AnswerOnce(const Client& client,
                                       const std::string& request,
                                       absl::Duration work_time,
                                       absl::Duration remembered,
                                       absl::FunctionRef<std::string()> work) {
  const std::string key = "request/" + request;
  const auto claim = client.Put(
      key, "", {.ttl = work_time, .condition = PutCondition::kIfAbsent});
  if (HasReason(claim.status(), ErrorReason::kKeyExists)) {
    const auto entry = client.Get(key);
    if (!entry.ok()) return entry.status();
    if (*entry && !(*entry)->value.empty()) return (*entry)->value.substr(1);
    return absl::AbortedError("the request is being worked on");
  }
  if (!claim.ok()) return claim.status();
  const std::string answer = work();
  const auto put = client.Put(
      key, "=" + answer, {.ttl = remembered, .if_version = claim->version});
  if (!put.ok()) return put.status();
  return answer;
}

absl::StatusOr<std::vector<std::string>> WhoHasLeft(const Table& table,
                                                    Watcher& watcher,
                                                    absl::Duration patience) {
  const auto batch = watcher.Next(patience);
  if (!batch.ok()) return batch.status();
  std::vector<std::string> left;
  for (const ExpiredEvent& event : batch->events) {
    if (auto member = table.MemberOf(event.key)) left.push_back(*member);
  }
  return left;
}

}  // namespace timecache::examples
