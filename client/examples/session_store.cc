#include "client/examples/session_store.h"

#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/examples/session.h"

namespace timecache::sessionize {
namespace {

absl::Status CheckWish(const Namespace& found, const NamespaceWish& wish) {
  const absl::Duration ttl = found.options.ttl.value_or(absl::ZeroDuration());
  const uint32_t buckets = found.options.num_buckets.value_or(0);
  if (wish.ttl.value_or(ttl) == ttl &&
      wish.buckets.value_or(buckets) == buckets) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "namespace \"", found.name, "\" already exists, with a ttl of ",
      absl::FormatDuration(ttl), " and ", buckets,
      " buckets: leave out --ttl and --buckets, name another with --namespace, "
      "or delete it with: timecachectl ns delete ",
      found.name));
}

// The outcome of a conditional write.
bool WasOutrun(const absl::Status& status) {
  return absl::IsFailedPrecondition(status);
}

// The session as it was found, if it was, and these requests.
absl::StatusOr<Operation> MakePut(const std::optional<Entry>& found,
                                  absl::Span<const LogLine* const> lines) {
  Session session;
  PutOptions options = {.condition = PutCondition::kIfAbsent};
  if (found) {
    absl::StatusOr<Session> so_far = DecodeSession(found->value);
    if (!so_far.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the entry of ", found->key,
          " is not a session: name a namespace of its own with --namespace"));
    }
    session = *so_far;
    options = {.if_version = found->version};
  }
  for (const LogLine* line : lines) AddRequest(*line, session);
  return Operation::Put(lines.front()->visitor, EncodeSession(session),
                        options);
}

}  // namespace

absl::StatusOr<Namespace> PrepareNamespace(const Client& client,
                                           const NamespaceWish& wish) {
  const std::string& name = client.options().default_namespace;
  NamespaceOptions options;
  options.ttl = wish.ttl.value_or(kDefaultTtl);
  options.num_buckets = wish.buckets.value_or(kDefaultBuckets);
  absl::StatusOr<Namespace> made = client.CreateNamespace(name, options);
  if (!absl::IsAlreadyExists(made.status())) return made;
  absl::StatusOr<Namespace> found = client.GetNamespace(name);
  if (!found.ok()) return found;
  const absl::Status status = CheckWish(*found, wish);
  if (!status.ok()) return status;
  return found;
}

absl::Status SessionStore::Read(absl::Span<Visit* const> visits) {
  for (Visit* visit : visits) {
    const absl::Status taken = pipeline_.Add(
        Operation::Get(visit->visitor()),
        [visit](const OperationResult& result) { visit->got = result; });
    if (!taken.ok()) break;
  }
  // Tells what Add has told, too.
  if (absl::Status status = pipeline_.Wait(); !status.ok()) return status;
  for (const Visit* visit : visits) {
    if (!visit->got.status.ok()) return visit->got.status;
  }
  return absl::OkStatus();
}

absl::Status SessionStore::Write(absl::Span<Visit* const> visits) {
  absl::Status status;
  for (Visit* visit : visits) {
    const absl::StatusOr<Operation> put =
        MakePut(visit->got.entry, visit->lines);
    status = put.ok() ? pipeline_.Add(*put,
                                      [this, visit](const auto& result) {
                                        visit->put = result.status;
                                        if (result.status.ok()) {
                                          last_visitor_ = visit->visitor();
                                        }
                                      })
                      : put.status();
    if (!status.ok()) break;
  }
  status.Update(pipeline_.Wait());
  for (const Visit* visit : visits) {
    if (!WasOutrun(visit->put)) status.Update(visit->put);
  }
  return status;
}

absl::Status SessionStore::Add(absl::Span<const LogLine> lines) {
  std::vector<Visit> visits;
  absl::flat_hash_map<std::string_view, size_t> index;
  for (const LogLine& line : lines) {
    const auto [it, is_new] = index.try_emplace(line.visitor, visits.size());
    if (is_new) visits.emplace_back();
    visits[it->second].lines.push_back(&line);
  }
  std::vector<Visit*> open;
  open.reserve(visits.size());
  for (Visit& visit : visits) open.push_back(&visit);
  for (int attempt = 0; attempt < kMaxAttempts && !open.empty(); ++attempt) {
    absl::Status status = Read(open);
    if (status.ok()) status = Write(open);
    if (!status.ok()) return status;
    std::erase_if(open,
                  [](const Visit* visit) { return !WasOutrun(visit->put); });
  }
  if (open.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "the session of ", open.front()->visitor(), " was changed by others ",
      kMaxAttempts, " times in a row: run fewer at a time"));
}

}  // namespace timecache::sessionize
