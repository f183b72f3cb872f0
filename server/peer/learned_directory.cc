#include "server/peer/learned_directory.h"

#include <memory>
#include <vector>

#include "server/engine/store/partitions.h"

namespace timecache::server {

PartitionDirectory::Names LearnedDirectory::PartitionsOf(
    absl::string_view namespace_name) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto it = entries_.find(namespace_name);
  return it == entries_.end() ? nullptr : it->second.partitions;
}

PartitionDirectory::Names LearnedDirectory::NamesOf(
    absl::string_view namespace_name, int count) const {
  auto names = std::make_shared<std::vector<std::string>>();
  for (int i = 0; i < count; ++i) {
    names->push_back(PartitionAddress(namespace_name, i, count));
  }
  return names;
}

LearnedDirectory::Known LearnedDirectory::Know(
    absl::string_view namespace_name) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto it = entries_.find(namespace_name);
  if (it == entries_.end()) return Known::kNothing;
  return it->second.partitions == nullptr ? Known::kOne : Known::kSeveral;
}

void LearnedDirectory::Learn(absl::string_view namespace_name, int count) {
  Names partitions = count > 1 ? NamesOf(namespace_name, count) : nullptr;
  absl::MutexLock lock(&mu_);
  Entry& entry = entries_[namespace_name];
  const bool is_new = entry.number == 0;
  entry.partitions = std::move(partitions);
  if (!is_new) return;
  entry.number = ++last_number_;
  learned_.emplace_back(namespace_name, entry.number);
  // Each name here once, and some that were forgotten: so not without end.
  while (entries_.size() > kMaxNames || learned_.size() > 2 * kMaxNames) {
    const auto oldest = entries_.find(learned_.front().first);
    if (oldest != entries_.end() &&
        oldest->second.number == learned_.front().second) {
      entries_.erase(oldest);
    }
    learned_.pop_front();
  }
}

void LearnedDirectory::Forget(absl::string_view namespace_name) {
  absl::MutexLock lock(&mu_);
  entries_.erase(namespace_name);
}

}  // namespace timecache::server
