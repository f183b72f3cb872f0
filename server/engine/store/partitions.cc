#include "server/engine/store/partitions.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/engine/store/key_hash.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/partition_directory.h"

namespace timecache::server {
namespace {

constexpr char kMark = '#';
constexpr char kCountMark = '/';

}  // namespace

std::string PartitionName(absl::string_view namespace_name, int partition) {
  if (partition == 0) return std::string(namespace_name);
  return absl::StrCat(namespace_name, absl::string_view(&kMark, 1), partition);
}

std::string PartitionAddress(absl::string_view namespace_name, int partition,
                             int count) {
  return absl::StrCat(namespace_name, absl::string_view(&kMark, 1), partition,
                      absl::string_view(&kCountMark, 1), count);
}

PartitionDirectory::Names PartitionNames(absl::string_view namespace_name,
                                         int count) {
  auto names = std::make_shared<std::vector<std::string>>();
  for (int i = 0; i < count; ++i) {
    names->push_back(PartitionName(namespace_name, i));
  }
  return names;
}

PartitionDirectory::Names PartitionDirectory::NamesOf(
    absl::string_view namespace_name, int count) const {
  return PartitionNames(namespace_name, count);
}

PartitionPlace PlaceOf(absl::string_view map_name) {
  const size_t mark = map_name.find(kMark);
  PartitionPlace place = {map_name.substr(0, mark)};
  if (mark == absl::string_view::npos) return place;
  absl::string_view partition = map_name.substr(mark + 1);
  const size_t count_mark = partition.find(kCountMark);
  const bool counted = count_mark != absl::string_view::npos;
  if ((counted &&
       !absl::SimpleAtoi(partition.substr(count_mark + 1), &place.count)) ||
      !absl::SimpleAtoi(partition.substr(0, count_mark), &place.partition)) {
    place.partition = -1;
  }
  return place;
}

absl::string_view MapNameOf(absl::string_view map_name_or_address) {
  const size_t mark = map_name_or_address.find(kMark);
  if (mark == absl::string_view::npos) return map_name_or_address;
  const size_t count_mark = map_name_or_address.find(kCountMark, mark);
  if (count_mark == absl::string_view::npos) return map_name_or_address;
  const bool first =
      map_name_or_address.substr(mark + 1, count_mark - mark - 1) == "0";
  return map_name_or_address.substr(0, first ? mark : count_mark);
}

uint32_t SlotOfMap(absl::string_view map_name, uint32_t slots) {
  static constexpr uint64_t kSeed = 0;
  return static_cast<uint32_t>(KeyHash(kSeed)(MapNameOf(map_name)) % slots);
}

absl::Status ValidateMapName(absl::string_view map_name) {
  const PartitionPlace place = PlaceOf(map_name);
  const bool canonical =
      place.count == 0 && place.partition >= 0 &&
      place.partition < kMaxPartitions &&
      PartitionName(place.namespace_name, place.partition) == map_name;
  return ValidateNamespaceName(canonical ? place.namespace_name : map_name);
}

}  // namespace timecache::server
