#include "server/service/call/access.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"

namespace timecache {

std::string Verbs::ToString() const {
  constexpr std::pair<v1::Verb, absl::string_view> kNames[] = {
      {v1::VERB_READ, "read"},
      {v1::VERB_WRITE, "write"},
      {v1::VERB_WATCH, "watch"},
      {v1::VERB_SETTLE, "settle"},
      {v1::VERB_ADMIN, "admin"}};
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
      verbs = v1::VERB_WRITE;
      break;
    case OpKind::kTouch:
      return v1::VERB_WRITE;
    case OpKind::kGet:
      verbs = v1::VERB_READ;
      break;
    case OpKind::kContains:
      return v1::VERB_READ;
  }
  if (operation.touch) verbs = verbs | v1::VERB_WRITE;
  if (operation.return_previous) verbs = verbs | v1::VERB_READ;
  return verbs;
}

absl::Status CheckPrincipal(const Access& access, absl::string_view principal,
                            Verbs verbs, absl::string_view name) {
  const std::shared_ptr<const Caller> caller = access.FindPrincipal(principal);
  if (caller != nullptr && caller->VerbsIn(name).Contains(verbs)) {
    return absl::OkStatus();
  }
  return ErrorWithReason(absl::StatusCode::kPermissionDenied, "ACCESS_DENIED",
                         absl::StrCat("principal \"", principal, "\" may not ",
                                      verbs.ToString(), " in namespace ", name),
                         {{"principal", std::string(principal)},
                          {"namespace", std::string(name)}});
}

}  // namespace timecache
