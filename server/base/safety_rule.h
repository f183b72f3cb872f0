// The rules that keep a cluster safe, which a test may switch off.

#ifndef TIMECACHED_SERVER_BASE_SAFETY_RULE_H_
#define TIMECACHED_SERVER_BASE_SAFETY_RULE_H_

#include <atomic>
#include <cstdint>

namespace timecache::server {

enum class SafetyRule : uint8_t {
  kNone,
  // Which records count is a matter of claims and positions, not of being stored.
  kClaims,
  // An owner answers only while its lease holds.
  kLease,
};

namespace internal {
inline std::atomic<SafetyRule> rule_off = SafetyRule::kNone;
}  // namespace internal

// To show that a test notices what the rule prevents. The program that users run
// has nothing that calls it.
inline void SwitchOff(SafetyRule rule) { internal::rule_off.store(rule); }

// A load, and a branch that is predicted.
inline bool IsKept(SafetyRule rule) {
  return internal::rule_off.load(std::memory_order_relaxed) != rule;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_SAFETY_RULE_H_
