#include "client/examples/session_store.h"

#include "absl/strings/str_cat.h"
#include "client/cli/units.h"
#include "client/cpp/convert.h"
#include "client/examples/session.h"

namespace timecache::sessionize {
namespace {

absl::Status CheckWish(const v1::Namespace& found, const NamespaceWish& wish) {
  const absl::Duration ttl = FromProto(found.options().ttl());
  const uint32_t buckets = found.options().num_buckets();
  if (wish.ttl.value_or(ttl) == ttl &&
      wish.buckets.value_or(buckets) == buckets) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "namespace \"", found.name(), "\" is there already, with a ttl of ",
      cli::DurationText(ttl), " and ", buckets,
      " buckets: leave out --ttl and --buckets, name another with --namespace, "
      "or delete it with: timecachectl ns delete ",
      found.name()));
}

// How a write that depends on what was read ended.
bool WasOutrun(const absl::Status& status) {
  return absl::IsFailedPrecondition(status);
}

}  // namespace

absl::StatusOr<v1::Namespace> PrepareNamespace(const Client& client,
                                               const NamespaceWish& wish) {
  const std::string& name = client.options().default_namespace;
  v1::NamespaceOptions options;
  *options.mutable_ttl() = ToProto(wish.ttl.value_or(kDefaultTtl));
  options.set_num_buckets(wish.buckets.value_or(kDefaultBuckets));
  absl::StatusOr<v1::Namespace> made = client.CreateNamespace(name, options);
  if (!absl::IsAlreadyExists(made.status())) return made;
  absl::StatusOr<v1::Namespace> found = client.GetNamespace(name);
  if (!found.ok()) return found;
  const absl::Status status = CheckWish(*found, wish);
  if (!status.ok()) return status;
  return found;
}

absl::Status SessionStore::Add(const LogLine& line) const {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const auto entry = client_.Get(line.visitor);
    if (!entry.ok()) return entry.status();
    Session session;
    PutOptions options = {.condition = PutCondition::kIfAbsent};
    if (*entry) {
      absl::StatusOr<Session> found = DecodeSession((*entry)->value);
      if (!found.ok()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the entry of ", line.visitor,
            " is not a session: name a namespace of its own with --namespace"));
      }
      session = *found;
      options = {.if_version = (*entry)->version};
    }
    AddRequest(line, session);
    const absl::Status status =
        client_.Put(line.visitor, EncodeSession(session), options).status();
    if (!WasOutrun(status)) return status;
  }
  return absl::AbortedError(
      absl::StrCat("the session of ", line.visitor, " was changed by others ",
                   kMaxAttempts, " times in a row: run fewer at a time"));
}

}  // namespace timecache::sessionize
