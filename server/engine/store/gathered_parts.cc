#include "server/engine/store/gathered_parts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/wire_format.h"

namespace timecache::server {
namespace {

constexpr uint8_t kPart = WireTag(1, kLengthDelimited);
constexpr uint8_t kExpectedParts = WireTag(2, kVarint);
constexpr uint8_t kExpectedName = WireTag(3, kLengthDelimited);
constexpr uint8_t kName = WireTag(1, kLengthDelimited);
constexpr uint8_t kValue = WireTag(2, kLengthDelimited);

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
  expected_ = 0;
  expectation_.clear();
  keep_first = false;
  remember_us = 0;
  if (absl::Status status = CheckName("part", part); !status.ok()) {
    return status;
  }
  if (expected_names.empty() && expected_parts == 0) return absl::OkStatus();
  if (expected_names.empty()) {
    if (absl::Status status = CheckCount("expected_parts", expected_parts);
        !status.ok()) {
      return status;
    }
    expected_ = static_cast<uint32_t>(expected_parts);
    expectation_.push_back(static_cast<char>(kExpectedParts));
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

StoredExpectation ReadExpectation(absl::string_view value,
                                  absl::string_view part) {
  StoredExpectation expectation;
  WireReader left(value);
  for (uint8_t tag; left.Tag(&tag) && tag != kPart;) {
    absl::string_view name;
    uint64_t number;
    if (tag == kExpectedParts && left.Varint(&number)) {
      expectation.parts = static_cast<uint32_t>(number);
      expectation.has_part = true;
    } else if (tag == kExpectedName && left.Bytes(&name)) {
      ++expectation.parts;
      expectation.has_part = expectation.has_part || name == part;
    } else {
      break;
    }
    expectation.bytes = value.size() - left.left();
  }
  return expectation;
}

// What follows is a part, or the value would expect more.
bool ExpectsTheSame(absl::string_view value, const Gathering& gathering) {
  const absl::string_view expectation = gathering.expectation();
  return value.size() > expectation.size() &&
         absl::StartsWith(value, expectation) &&
         value[expectation.size()] == static_cast<char>(kPart);
}

void AppendPart(const GatheredPart& part, std::string* value) {
  const size_t size = BytesSize(part.name) + BytesSize(part.value);
  const size_t begin = value->size();
  value->resize(begin + 1 + VarintSize(size) + size);
  char* to = value->data() + begin;
  *to++ = static_cast<char>(kPart);
  to = PutVarint(size, to);
  to = PutBytes(kName, part.name, to);
  PutBytes(kValue, part.value, to);
}

bool PartsReader::Next(GatheredPart* part) {
  for (uint8_t tag; left_.Tag(&tag);) {
    absl::string_view bytes;
    uint64_t number;
    if (tag == kPart) {
      *part = {};
      offset_ = bytes_ - left_.left() - 1;
      if (!left_.Bytes(&bytes)) break;
      WireReader fields(bytes);
      if (fields.Skip(kName) && !fields.Bytes(&part->name)) break;
      if (fields.Skip(kValue) && !fields.Bytes(&part->value)) break;
      return true;
    }
    const bool expected = tag == kExpectedParts
                              ? left_.Varint(&number)
                              : tag == kExpectedName && left_.Bytes(&bytes);
    if (!expected) break;
  }
  left_ = WireReader("");
  return false;
}

}  // namespace timecache::server
