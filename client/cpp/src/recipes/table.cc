#include "timecache/recipes/table.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/recipes/member_key.h"

namespace timecache {

Table::Table(const Client& client, std::string_view name, TableOptions options)
    : client_(client), key_prefix_(KeyPrefix(name)), options_(options) {}

absl::StatusOr<bool> Table::Add(std::string_view member) const {
  const auto put = client_.Put(MemberKey(key_prefix_, member), "",
                               {.ttl = options_.ttl, .return_previous = true});
  if (!put.ok()) return put.status();
  return !put->previous;
}

absl::StatusOr<bool> Table::Remove(std::string_view member) const {
  const auto removed = client_.Remove(MemberKey(key_prefix_, member));
  if (!removed.ok()) return removed.status();
  return removed->removed;
}

absl::StatusOr<bool> Table::Contains(std::string_view member) const {
  return client_.Contains(MemberKey(key_prefix_, member));
}

absl::StatusOr<std::vector<std::string>> Table::List() const {
  std::vector<std::string> members;
  const absl::Status scanned = client_.Scan(
      {.key_prefix = key_prefix_, .keys_only = true}, [&](const Entry& entry) {
        members.push_back(entry.key.substr(key_prefix_.size()));
        return true;
      });
  if (!scanned.ok()) return scanned;
  std::sort(members.begin(), members.end());
  return members;
}

std::optional<std::string> Table::MemberOf(std::string_view key) const {
  return MemberOfKey(key_prefix_, key);
}

}  // namespace timecache
