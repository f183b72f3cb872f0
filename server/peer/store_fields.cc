#include "server/peer/store_fields.h"

#include "server/base/wire_format.h"
#include "server/base/wire_reader.h"

namespace timecache::server {
namespace {

// Of GatheredParts in watch.proto, in which a Gathering has its expectation.
constexpr uint8_t kExpectedParts = WireTag(2, kVarint);

// Sets what was expected as it was set before.
bool SetExpectation(absl::string_view part, absl::string_view expectation,
                    Gathering* gathering) {
  uint64_t parts = 0;
  std::vector<absl::string_view> names;
  WireReader left(expectation);
  for (uint8_t tag; left.Tag(&tag);) {
    const bool read = tag == kExpectedParts ? left.Varint(&parts)
                                            : left.Bytes(&names.emplace_back());
    if (!read) return false;
  }
  return gathering->Set(part, parts, names).ok();
}

}  // namespace

void WriteOperations(absl::Span<const Operation> operations, FieldWriter* to) {
  size_t bytes = 0;
  for (const Operation& op : operations) {
    bytes += kBytesOfOperation + op.key.size() + op.value.size();
  }
  to->Reserve(bytes);
  (*to)(operations.size());
  for (const Operation& op : operations) {
    (*to)(op, op.gathering != nullptr);
    if (op.gathering == nullptr) continue;
    (*to)(op.gathering->part(), op.gathering->expectation(),
          op.gathering->keep_first, op.gathering->remember_us);
  }
}

void WriteResults(absl::Span<const Result> results, FieldWriter* to) {
  size_t bytes = 0;
  for (const Result& result : results) {
    bytes +=
        kBytesOfResult + (result.has_entry ? result.entry.value.size() : 0);
  }
  to->Reserve(bytes);
  for (const Result& result : results) (*to)(result);
}

bool ReadOperations::Read(FieldReader* from) {
  size_t count = 0;
  if (!from->ReadCount(&count)) return false;
  for (size_t i = 0; i < count && from->ok(); ++i) {
    Operation& op = operations.emplace_back();
    bool gathers = false;
    (*from)(op, gathers);
    if (!gathers) continue;
    absl::string_view part;
    absl::string_view expectation;
    bool keep_first = false;
    int64_t remember_us = 0;
    (*from)(part, expectation, keep_first, remember_us);
    Gathering& gathering = gatherings.emplace_back();
    if (!SetExpectation(part, expectation, &gathering)) return false;
    gathering.keep_first = keep_first;
    gathering.remember_us = remember_us;
    op.gathering = &gathering;
  }
  return from->ok();
}

}  // namespace timecache::server
