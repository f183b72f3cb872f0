#include "server/api/access.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

std::string Verbs::ToString() const {
  constexpr std::pair<config::v1::Verb, absl::string_view> kNames[] = {
      {config::v1::VERB_READ, "read"},
      {config::v1::VERB_WRITE, "write"},
      {config::v1::VERB_WATCH, "watch"},
      {config::v1::VERB_SETTLE, "settle"},
      {config::v1::VERB_ADMIN, "admin"}};
  std::string text;
  for (const auto& [verb, name] : kNames) {
    if (!Contains(verb)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name);
  }
  return text;
}

Verbs VerbsOf(const Operation& operation) {
  Verbs verbs;
  switch (operation.kind) {
    case OpKind::kPut:
    case OpKind::kRemove:
      verbs = config::v1::VERB_WRITE;
      break;
    case OpKind::kTouch:
    case OpKind::kAppend:
      return config::v1::VERB_WRITE;
    case OpKind::kCombine:
    case OpKind::kGather:
      // The answer may be the value.
      return {config::v1::VERB_READ, config::v1::VERB_WRITE};
    case OpKind::kGet:
      verbs = config::v1::VERB_READ;
      break;
    case OpKind::kContains:
      return config::v1::VERB_READ;
  }
  if (operation.touch) verbs = verbs | config::v1::VERB_WRITE;
  if (operation.return_previous) verbs = verbs | config::v1::VERB_READ;
  return verbs;
}

absl::Status CheckPrincipal(const Access& access, absl::string_view principal,
                            Verbs verbs, absl::string_view name) {
  const std::shared_ptr<const Caller> caller = access.FindPrincipal(principal);
  if (caller != nullptr && caller->VerbsIn(name).Contains(verbs)) {
    return absl::OkStatus();
  }
  return ErrorWithReason(absl::StatusCode::kPermissionDenied,
                         Reason::kAccessDenied,
                         absl::StrCat("principal \"", principal, "\" may not ",
                                      verbs.ToString(), " in namespace ", name),
                         {{"principal", std::string(principal)},
                          {"namespace", std::string(name)}});
}

}  // namespace timecache::server
