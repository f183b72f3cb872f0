#include "server/engine/store/dead_letter_route.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"
#include "server/base/units.h"

namespace timecache::server {
namespace {

constexpr absl::string_view kAdvice =
    "choose one that keeps letters until people have looked at them, such as "
    "ttl and max_ttl 30d";

std::string TtlText(const NamespaceOptions& options) {
  return DurationText(absl::Microseconds(options.ttl_us));
}

}  // namespace

absl::Status CheckDeadLetterRoute(absl::string_view name,
                                  const NamespaceOptions& options,
                                  OptionsOf options_of) {
  std::string route(name);
  // A cycle without `name`, of an older server's namespaces, ends the walk.
  absl::flat_hash_set<std::string> seen;
  std::string next = options.dead_letter_namespace;
  while (!next.empty() && seen.insert(next).second) {
    absl::StrAppend(&route, " -> ", next);
    if (next == name) {
      return InvalidField(
          "dead_letter_namespace",
          absl::StrCat("must be another namespace, whose dead letters do not "
                       "come back: they would never end: ",
                       route));
    }
    std::optional<NamespaceOptions> of = options_of(next);
    next = of.has_value() ? std::move(of->dead_letter_namespace) : "";
  }
  return absl::OkStatus();
}

std::vector<std::string> DeadLetterWarnings(absl::string_view name,
                                            const NamespaceOptions& options,
                                            int senders, OptionsOf options_of) {
  std::vector<std::string> warnings;
  const std::string& to = options.dead_letter_namespace;
  if (!to.empty()) {
    const std::optional<NamespaceOptions> letters = options_of(to);
    if (!letters.has_value()) {
      warnings.push_back(absl::StrCat(
          "the dead_letter_namespace ", to,
          " does not exist: until it does, events that are to become dead "
          "letters stay in their groups; create it, or correct the name"));
    } else if (letters->ttl_us < kMinDeadLetterTtlUs) {
      warnings.push_back(absl::StrCat("dead letters of ", name,
                                      " expire soon, by the ttl of ", to, ", ",
                                      TtlText(*letters), ": ", kAdvice));
    }
  }
  if (senders > 0 && options.ttl_us < kMinDeadLetterTtlUs) {
    warnings.push_back(
        absl::StrCat(name, " is the dead_letter_namespace of ", senders,
                     senders == 1 ? " namespace" : " namespaces",
                     ", and the letters expire soon, by its ttl, ",
                     TtlText(options), ": ", kAdvice));
  }
  return warnings;
}

}  // namespace timecache::server
