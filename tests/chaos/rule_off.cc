// Switches off the rule of safety that CHAOS_RULE_OFF names, before main.

#include <cstdlib>
#include <string>

#include "server/base/safety_rule.h"

namespace timecache::server {
namespace {

[[maybe_unused]] const bool switched_off = [] {
  const char* const text = std::getenv("CHAOS_RULE_OFF");
  const std::string rule = text != nullptr ? text : "";
  if (rule == "claims") SwitchOff(SafetyRule::kClaims);
  if (rule == "lease") SwitchOff(SafetyRule::kLease);
  return true;
}();

}  // namespace
}  // namespace timecache::server
