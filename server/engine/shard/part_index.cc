#include "server/engine/shard/part_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "server/engine/store/gathered_parts.h"

namespace timecache::server {
namespace {

using record_internal::GetFixed;

constexpr size_t kSlotBytes = sizeof(uint32_t);
// Slots that a value gets before it needs them: enough for all parts, and an
// eighth of its bytes. So only a value of small parts moves to get more.
constexpr size_t kMaxEarlySlots = size_t{2} * kMaxExpectedParts;
constexpr size_t kValueBytesPerEarlySlot = 8 * kSlotBytes;

uint32_t CountParts(absl::string_view index) {
  return GetFixed<uint32_t>(index.data());
}
size_t Slots(absl::string_view index) { return index.size() / kSlotBytes - 1; }

void PutNumber(size_t number, char* to) {
  const auto value = static_cast<uint32_t>(number);
  std::memcpy(to, &value, sizeof(value));
}

// The slots of a name, one after the other.
class Probe {
 public:
  Probe(absl::string_view name, const KeyHash& hash, absl::string_view index)
      : index_(index.data()), mask_(Slots(index) - 1), slot_(hash(name)) {}

  // Where the slot lies in the index, and what it says.
  size_t at() const { return kSlotBytes * (1 + (slot_ & mask_)); }
  uint32_t offset() const { return GetFixed<uint32_t>(index_ + at()); }
  void Next() { ++slot_; }

 private:
  const char* const index_;
  const size_t mask_;
  size_t slot_;
};

}  // namespace

std::string MakePartIndex(absl::string_view value, const KeyHash& hash) {
  size_t parts = 0;
  GatheredPart part;
  for (PartsReader reader(value); reader.Next(&part);) ++parts;
  const size_t early =
      std::min(kMaxEarlySlots, value.size() / kValueBytesPerEarlySlot);
  const size_t slots =
      std::max(std::bit_ceil(2 * (parts + 1)), std::bit_floor(early));
  std::string index(kSlotBytes * (1 + slots), '\0');
  for (PartsReader reader(value); reader.Next(&part);) {
    AddToPartIndex(part.name, reader.offset(), hash, index, index.data());
  }
  return index;
}

bool HasRoomForPart(absl::string_view index) {
  return 2 * (size_t{CountParts(index)} + 1) <= Slots(index);
}

void AddToPartIndex(absl::string_view name, size_t offset, const KeyHash& hash,
                    absl::string_view index, char* to) {
  Probe probe(name, hash, index);
  while (probe.offset() != 0) probe.Next();
  PutNumber(offset, to + probe.at());
  PutNumber(CountParts(index) + size_t{1}, to);
}

FoundPart FindPart(const Record& record, size_t begin, absl::string_view name,
                   const KeyHash& hash) {
  FoundPart found;
  GatheredPart part;
  if (record.index.empty()) {
    for (PartsReader reader(record.value.substr(begin)); reader.Next(&part);
         ++found.parts) {
      if (part.name != name) continue;
      found.found = true;
      found.value = part.value;
    }
    found.parts_read = static_cast<uint64_t>(found.parts);
    return found;
  }
  found.parts = CountParts(record.index);
  for (Probe probe(name, hash, record.index);
       !found.found && probe.offset() != 0; probe.Next()) {
    ++found.parts_read;
    PartsReader(record.value.substr(probe.offset())).Next(&part);
    if (part.name != name) continue;
    found.found = true;
    found.value = part.value;
  }
  return found;
}

}  // namespace timecache::server
