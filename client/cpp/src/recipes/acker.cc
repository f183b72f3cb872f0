#include "timecache/recipes/acker.h"

#include "absl/strings/numbers.h"
#include "client/cpp/src/recipes/member_key.h"
#include "client/cpp/src/recipes/random_id.h"

namespace timecache {
namespace {

// In the number of a tree that is not tracked yet, or any more. A missing entry
// counts as this; Track takes it away.
constexpr int64_t kUntracked = 1;

int64_t Xor(uint64_t first, const std::vector<uint64_t>& more) {
  for (const uint64_t id : more) first ^= id;
  return static_cast<int64_t>(first);
}

absl::StatusOr<bool> Removed(const absl::StatusOr<CombineResult>& result) {
  if (!result.ok()) return result.status();
  return result->removed;
}

}  // namespace

Acker::Acker(const Client& client, std::string_view name, AckerOptions options)
    : client_(client),
      key_prefix_(KeyPrefix(name)),
      options_(
          {.initial = kUntracked, .remove_if_zero = true, .ttl = options.ttl}) {
}

uint64_t Acker::NewId() {
  while (true) {
    const uint64_t id = RandomId() & ~static_cast<uint64_t>(kUntracked);
    if (id != 0) return id;
  }
}

absl::StatusOr<bool> Acker::Track(std::string_view root,
                                  const std::vector<uint64_t>& emitted) const {
  return Removed(client_.Combine(MemberKey(key_prefix_, root),
                                 Combination::kXor, Xor(kUntracked, emitted),
                                 options_));
}

absl::StatusOr<bool> Acker::Ack(std::string_view root, uint64_t tuple,
                                const std::vector<uint64_t>& emitted) const {
  return Removed(client_.Combine(MemberKey(key_prefix_, root),
                                 Combination::kXor, Xor(tuple, emitted),
                                 options_));
}

absl::StatusOr<bool> Acker::Fail(std::string_view root) const {
  const auto removed = client_.Remove(MemberKey(key_prefix_, root));
  if (!removed.ok()) return removed.status();
  return removed->removed;
}

Operation Acker::TrackOperation(std::string_view root,
                                const std::vector<uint64_t>& emitted) const {
  return Operation::Combine(MemberKey(key_prefix_, root), Combination::kXor,
                            Xor(kUntracked, emitted), options_);
}

Operation Acker::AckOperation(std::string_view root, uint64_t tuple,
                              const std::vector<uint64_t>& emitted) const {
  return Operation::Combine(MemberKey(key_prefix_, root), Combination::kXor,
                            Xor(tuple, emitted), options_);
}

std::optional<std::string> Acker::FailedRoot(const ExpiredEvent& event) const {
  int64_t number = 0;
  if (event.cause == ExpiryCause::kExpiring ||
      !absl::SimpleAtoi(event.value, &number) || (number & kUntracked) != 0) {
    return std::nullopt;
  }
  return MemberOfKey(key_prefix_, event.key);
}

}  // namespace timecache
