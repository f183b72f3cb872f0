#include "timecache/recipes/array.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/recipes/random_id.h"
#include "client/cpp/src/recipes/record_bytes.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// A record is one of these, the id, and, of what was added, the value's length
// in four bytes and the value.
constexpr char kAdded = '+';
constexpr char kRemoved = '-';

constexpr int kMaxTries = 16;

void AppendAdded(const Array::Item& item, std::string* to) {
  to->push_back(kAdded);
  AppendNumber(item.id, to);
  AppendNumber(static_cast<uint32_t>(item.value.size()), to);
  to->append(item.value);
}

absl::Status NoArray(std::string_view value, std::string_view rest) {
  return absl::DataLossError(
      absl::StrCat("the value is no array: byte ", value.size() - rest.size(),
                   " of ", value.size(), " begins no whole record"));
}

}  // namespace

Array::Array(const Client& client, std::string key, ArrayOptions options)
    : client_(client), key_(std::move(key)), options_(options) {}

uint64_t Array::NewId() { return RandomId(); }

absl::StatusOr<uint64_t> Array::Add(std::string_view value) const {
  const Item item = {.id = NewId(), .value = std::string(value)};
  const absl::Status added = Add(item);
  if (!added.ok()) return added;
  return item.id;
}

absl::Status Array::Add(const Item& item) const {
  std::string record;
  AppendAdded(item, &record);
  return Append(record, /*only_if_present=*/false);
}

absl::Status Array::Remove(uint64_t id) const {
  std::string record(1, kRemoved);
  AppendNumber(id, &record);
  absl::Status removed = Append(record, /*only_if_present=*/true);
  if (HasReason(removed, ErrorReason::kKeyNotFound)) return absl::OkStatus();
  return removed;
}

absl::StatusOr<Array::Contents> Array::Read() const {
  const auto entry = client_.Get(key_);
  if (!entry.ok()) return entry.status();
  if (!*entry) return Contents();
  auto contents = Fold((*entry)->value);
  if (contents.ok()) contents->version = (*entry)->version;
  return contents;
}

absl::Status Array::Update(
    absl::FunctionRef<void(std::vector<Item>& items)> change) const {
  return Rewrite(change, options_.renew);
}

absl::Status Array::Compact() const {
  return Rewrite([](std::vector<Item>&) {}, /*renew=*/false);
}

// A value that cannot be an array of whole records is not an array.
absl::StatusOr<Array::Contents> Array::Fold(std::string_view value) {
  std::vector<std::optional<Item>> items;
  absl::flat_hash_map<uint64_t, size_t> places;
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view record = rest;
    const char kind = rest.front();
    rest.remove_prefix(1);
    Item item;
    uint32_t size = 0;
    std::string_view bytes;
    if ((kind != kAdded && kind != kRemoved) || !TakeNumber(&rest, &item.id) ||
        (kind == kAdded &&
         (!TakeNumber(&rest, &size) || !TakeBytes(&rest, size, &bytes)))) {
      return NoArray(value, record);
    }
    const auto [place, is_new] = places.try_emplace(item.id, items.size());
    if (kind == kRemoved) {
      // Later records of this id are repetitions of earlier calls.
      if (is_new) {
        items.emplace_back();
      } else {
        items[place->second].reset();
      }
    } else if (is_new) {
      item.value = bytes;
      items.emplace_back(std::move(item));
    }
  }
  Contents contents;
  contents.stored_bytes = value.size();
  for (std::optional<Item>& item : items) {
    if (!item) continue;
    contents.compact_bytes +=
        1 + sizeof(uint64_t) + sizeof(uint32_t) + item->value.size();
    contents.items.push_back(*std::move(item));
  }
  return contents;
}

absl::Status Array::Append(const std::string& record,
                           bool only_if_present) const {
  const AppendOptions options = {.ttl = options_.ttl,
                                 .condition = only_if_present
                                                  ? PutCondition::kIfPresent
                                                  : PutCondition::kAlways,
                                 .touch = options_.renew && !only_if_present};
  // A record that comes twice is folded once.
  const CallOptions call = {.repeatable = true};
  absl::Status appended = client_.Append(key_, record, options, call).status();
  if (!HasReason(appended, ErrorReason::kValueTooLarge)) return appended;
  if (absl::Status compacted = Compact(); !compacted.ok()) {
    return compacted;
  }
  return client_.Append(key_, record, options, call).status();
}

absl::Status Array::Rewrite(
    absl::FunctionRef<void(std::vector<Item>& items)> change,
    bool renew) const {
  for (int i = 0; i < kMaxTries; ++i) {
    auto contents = Read();
    if (!contents.ok()) return contents.status();
    const bool exists = contents->version != 0;
    change(contents->items);
    if (!exists && contents->items.empty()) return absl::OkStatus();
    std::string value;
    for (const Item& item : contents->items) AppendAdded(item, &value);
    PutOptions options = {.condition = PutCondition::kIfAbsent};
    if (exists) options.if_version = contents->version;
    if (exists && !renew) {
      options.keep_deadline = true;
    } else {
      options.ttl = options_.ttl;
    }
    absl::Status put = client_.Put(key_, value, options).status();
    if (!absl::IsFailedPrecondition(put)) return put;
  }
  return absl::AbortedError(
      absl::StrCat("the array \"", key_, "\" was changed ", kMaxTries,
                   " times while it was to be rewritten"));
}

}  // namespace timecache
