#include "server/engine/store/gathered_parts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/wire_format.h"

namespace timecache::server {
namespace {

// Protobuf's tags: a field's number and how it is written.
constexpr char kPart = WireTag(1, kLengthDelimited);
constexpr char kExpectedParts = WireTag(2, kVarint);
constexpr char kExpectedName = WireTag(3, kLengthDelimited);
constexpr char kName = WireTag(1, kLengthDelimited);
constexpr char kValue = WireTag(2, kLengthDelimited);

size_t BytesSize(absl::string_view bytes) {
  return bytes.empty() ? 0 : 1 + VarintSize(bytes.size()) + bytes.size();
}

// Left out if they are empty, as in proto3.
void PutBytes(char tag, absl::string_view bytes, std::string* to) {
  if (bytes.empty()) return;
  to->push_back(tag);
  PutVarint(bytes.size(), to);
  to->append(bytes.data(), bytes.size());
}

bool TakeBytes(absl::string_view* from, absl::string_view* bytes) {
  uint64_t size;
  if (!TakeVarint(from, &size) || size > from->size()) return false;
  *bytes = from->substr(0, size);
  from->remove_prefix(size);
  return true;
}

// A tag, if it is next.
bool Skip(char tag, absl::string_view* from) {
  if (from->empty() || from->front() != tag) return false;
  from->remove_prefix(1);
  return true;
}

absl::Status CheckName(absl::string_view field, absl::string_view name) {
  if (!name.empty() && name.size() <= kMaxPartNameBytes) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat("must be 1 to ", kMaxPartNameBytes,
                                          " bytes, not ", name.size()));
}

absl::Status CheckCount(absl::string_view field, uint64_t count) {
  if (count >= 1 && count <= kMaxExpectedParts) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("must be 1 to ", kMaxExpectedParts, ", not ", count));
}

}  // namespace

absl::Status Gathering::Set(
    absl::string_view part, uint64_t expected_parts,
    absl::Span<const absl::string_view> expected_names) {
  part_ = part;
  expectation_.clear();
  if (absl::Status status = CheckName("part", part); !status.ok()) {
    return status;
  }
  if (expected_names.empty()) {
    if (absl::Status status = CheckCount("expected_parts", expected_parts);
        !status.ok()) {
      return status;
    }
    expected_ = static_cast<uint32_t>(expected_parts);
    expectation_.push_back(kExpectedParts);
    PutVarint(expected_parts, &expectation_);
    return absl::OkStatus();
  }
  if (expected_parts != 0) {
    return InvalidField("expected_parts", "must not be set with names");
  }
  if (absl::Status status = CheckCount("expected_names", expected_names.size());
      !status.ok()) {
    return status;
  }
  expected_ = static_cast<uint32_t>(expected_names.size());
  std::vector<absl::string_view> names(expected_names.begin(),
                                       expected_names.end());
  std::sort(names.begin(), names.end());
  for (size_t i = 0; i < names.size(); ++i) {
    if (absl::Status status = CheckName("expected_names", names[i]);
        !status.ok()) {
      return status;
    }
    if (i > 0 && names[i] == names[i - 1]) {
      return InvalidField("expected_names", "must be distinct");
    }
    PutBytes(kExpectedName, names[i], &expectation_);
  }
  if (!std::binary_search(names.begin(), names.end(), part)) {
    return InvalidField("part", "must be one of expected_names");
  }
  return absl::OkStatus();
}

// What follows is a part, or the value would expect more.
bool ExpectsTheSame(absl::string_view value, const Gathering& gathering) {
  const absl::string_view expectation = gathering.expectation();
  return value.size() > expectation.size() &&
         absl::StartsWith(value, expectation) &&
         value[expectation.size()] == kPart;
}

void AppendPart(const GatheredPart& part, std::string* value) {
  const size_t size = BytesSize(part.name) + BytesSize(part.value);
  value->reserve(value->size() + 1 + VarintSize(size) + size);
  value->push_back(kPart);
  PutVarint(size, value);
  PutBytes(kName, part.name, value);
  PutBytes(kValue, part.value, value);
}

bool PartsReader::Next(GatheredPart* part) {
  for (;;) {
    absl::string_view bytes;
    uint64_t number;
    if (Skip(kPart, &left_)) {
      *part = {};
      if (!TakeBytes(&left_, &bytes)) break;
      if (Skip(kName, &bytes) && !TakeBytes(&bytes, &part->name)) break;
      if (Skip(kValue, &bytes) && !TakeBytes(&bytes, &part->value)) break;
      return true;
    }
    const bool expected =
        (Skip(kExpectedParts, &left_) && TakeVarint(&left_, &number)) ||
        (Skip(kExpectedName, &left_) && TakeBytes(&left_, &bytes));
    if (!expected) break;
  }
  left_ = {};
  return false;
}

}  // namespace timecache::server
