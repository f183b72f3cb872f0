// What a Gather collects under a key: parts, each with a name and a value, in
// the order of arrival, and the expected parts.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_GATHERED_PARTS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_GATHERED_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/wire_reader.h"

namespace timecache::server {

// The value of such an entry is the message that clients get, and is copied
// into events and answers as it is: GatheredParts of watch.proto, which has
//   bytes   parts = 1: a message with   bytes name = 1, bytes value = 2
//   uint32  expected_parts = 2
//   bytes   expected_names = 3
// What is expected stands first, so that a part is added at the end.

inline constexpr size_t kMaxPartNameBytes = 256;
inline constexpr uint32_t kMaxExpectedParts = 1024;

// A part's name, and the parts that its key expects.
class Gathering {
 public:
  // Either a number of parts, 1 to kMaxExpectedParts, and 0 names, or as many
  // distinct names and 0 parts; their order does not matter. Neither: what the
  // key's parts expect. INVALID_ARGUMENT
  // for any other, for a name that is not 1 to kMaxPartNameBytes long, and for
  // a part that is not among the names. `part` must stay valid, the names need
  // not. May be called again, which saves allocations. O(n log n) of names.
  absl::Status Set(absl::string_view part, uint64_t expected_parts,
                   absl::Span<const absl::string_view> expected_names);

  absl::string_view part() const { return part_; }
  // How many parts complete the key; 0: as many as its parts expect.
  uint32_t expected() const { return expected_; }
  // The prefix of a value that expects the same parts.
  absl::string_view expectation() const { return expectation_; }

  // A part that is there with another value stays.
  bool keep_first = false;
  // How long the key is remembered once this part has completed it; 0: not.
  int64_t remember_us = 0;

 private:
  absl::string_view part_;
  uint32_t expected_ = 0;
  std::string expectation_;
};

struct GatheredPart {
  absl::string_view name;
  absl::string_view value;
};

// What a value that has parts expects.
struct StoredExpectation {
  // Where its parts begin.
  size_t bytes = 0;
  uint32_t parts = 0;
  // Whether a part of the name that was asked for is among them.
  bool has_part = false;
};
// O(expected names).
StoredExpectation ReadExpectation(absl::string_view value,
                                  absl::string_view part);

// Whether a value expects the same parts.
bool ExpectsTheSame(absl::string_view value, const Gathering& gathering);

// Appends a part to a value that has its expectation.
void AppendPart(const GatheredPart& part, std::string* value);

// Walks the parts of a value, in order. Bytes that are no such value have none
// behind the first that is wrong. O(1) a part, whatever its size.
class PartsReader {
 public:
  explicit PartsReader(absl::string_view value)
      : bytes_(value.size()), left_(value) {}

  // False after the last. The views are into the value.
  bool Next(GatheredPart* part);
  // Where the part that Next has found begins in the value.
  size_t offset() const { return offset_; }

 private:
  const size_t bytes_;
  WireReader left_;
  size_t offset_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_GATHERED_PARTS_H_
