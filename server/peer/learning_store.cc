#include "server/peer/learning_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "server/base/error.h"
#include "server/engine/parts/dead_letter_walk.h"
#include "server/engine/parts/gather.h"
#include "server/engine/parts/when_all_exist.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/stale_names.h"
#include "server/peer/peer_link.h"

namespace timecache::server {
namespace {

// How often a call is tried whose namespace is made anew meanwhile.
constexpr int kMaxLearningTries = 2;

// Names that no namespace can have are not asked for: they would be maps'.
bool IsMapOnly(absl::string_view name) {
  return PlaceOf(name).namespace_name.size() != name.size();
}

}  // namespace

// --- What it knows.

absl::string_view LearningStore::Unknown(const About& about) const {
  const auto is_unknown = [this](absl::string_view name) {
    return parts_.directory->Know(name) == Known::kNothing && !IsMapOnly(name);
  };
  if (about.names.empty()) {
    return is_unknown(about.name) ? about.name : absl::string_view();
  }
  const auto unknown =
      std::find_if(about.names.begin(), about.names.end(), is_unknown);
  return unknown == about.names.end() ? absl::string_view()
                                      : absl::string_view(*unknown);
}

Store* LearningStore::StoreFor(const About& about) const {
  if (parts_.homes == nullptr || about.turns == About::Turns::kNone) {
    return parts_.namespaces;
  }
  const absl::string_view name =
      about.names.empty() ? about.name : absl::string_view(about.names.front());
  return parts_.directory->Know(name) == Known::kSeveral ? parts_.homes
                                                         : parts_.namespaces;
}

void LearningStore::Ask(absl::string_view name, DoneWith<NamespaceInfo> done) {
  parts_.maps->GetNamespace(
      name, /*include_statistics=*/false,
      [this, name,
       done = std::move(done)](absl::StatusOr<NamespaceInfo> info) mutable {
        if (info.ok()) {
          parts_.directory->Learn(name, info->options.num_partitions);
        } else if (absl::IsNotFound(info.status())) {
          parts_.directory->Forget(name);
        }
        done(std::move(info));
      });
}

// --- Passing on.

LearningStore::Choice LearningStore::AtOnce(const About& about) {
  if (!Unknown(about).empty()) return {};
  return {.store = StoreFor(about), .may_repeat = true};
}

void LearningStore::Next(std::shared_ptr<Call> call) {
  const absl::string_view unknown = Unknown(call->about);
  if (unknown.empty()) return call->PassTo(StoreFor(call->about));
  Ask(unknown, [this, call](const absl::StatusOr<NamespaceInfo>& info) {
    if (!info.ok()) return call->Fail(info.status());
    Next(call);
  });
}

bool LearningStore::Again(const std::shared_ptr<Call>& call,
                          const absl::Status& error) {
  const About& about = call->about;
  if (ReasonOf(error) != Reason::kNamespaceNotFound) return false;
  // Of one partition nothing was done.
  bool nothing_done = about.repeatable;
  if (about.names.empty()) {
    nothing_done |= parts_.directory->Know(about.name) != Known::kSeveral;
    parts_.directory->Forget(about.name);
  }
  for (const std::string& name : about.names) parts_.directory->Forget(name);
  if (!IsStale(error) || !nothing_done || ++call->tries >= kMaxLearningTries) {
    return false;
  }
  Next(call);
  return true;
}

// A later turn goes on where the first one was taken.
void LearningStore::Execute(absl::string_view name,
                            absl::Span<const Operation> operations,
                            absl::Span<Result> results, BatchProgress* progress,
                            Done done) {
  // Several partitions may be at one other node.
  const PeerLink::Together together;
  if (progress != nullptr &&
      (progress->reached > 0 || progress->state != nullptr)) {
    return parts_.namespaces->Execute(name, operations, results, progress,
                                      std::move(done));
  }
  PassingStore::Execute(name, operations, results, progress, std::move(done));
}

// --- Namespaces.

// Of one that is created or updated.
Store::DoneWith<NamespaceInfo> LearningStore::WithWarnings(
    DoneWith<NamespaceInfo> done) {
  return [this,
          done = std::move(done)](absl::StatusOr<NamespaceInfo> info) mutable {
    if (!info.ok()) return done(std::move(info));
    const auto told = std::make_shared<NamespaceInfo>(*std::move(info));
    FindDeadLetterWarnings(parts_.namespaces, told->name, told->options,
                           [told, done = std::move(done)](
                               std::vector<std::string> warnings) mutable {
                             for (std::string& warning : warnings) {
                               told->warnings.push_back(std::move(warning));
                             }
                             done(std::move(*told));
                           });
  };
}

void LearningStore::CreateNamespace(absl::string_view name,
                                    NamespaceOptions options,
                                    DoneWith<NamespaceInfo> done) {
  if (parts_.homes == nullptr) {
    return CreateChecked(name, std::move(options), std::move(done));
  }
  CheckDeadLetterRoute(
      parts_.namespaces, name, options,
      [this, name, options,
       done = WithWarnings(std::move(done))](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        CreateChecked(name, std::move(options), std::move(done));
      });
}

void LearningStore::CreateChecked(absl::string_view name,
                                  NamespaceOptions options,
                                  DoneWith<NamespaceInfo> done) {
  const int count = options.num_partitions;
  Store* const store = parts_.homes != nullptr && count > 1 && !IsMapOnly(name)
                           ? parts_.homes
                           : parts_.namespaces;
  store->CreateNamespace(name, std::move(options),
                         [this, name, count, done = std::move(done)](
                             absl::StatusOr<NamespaceInfo> info) mutable {
                           if (info.ok()) parts_.directory->Learn(name, count);
                           done(std::move(info));
                         });
}

void LearningStore::UpdateNamespace(absl::string_view name,
                                    OptionsChange<NamespaceOptions> change,
                                    DoneWith<NamespaceInfo> done) {
  if (parts_.homes == nullptr || IsMapOnly(name)) {
    return PassingStore::UpdateNamespace(name, std::move(change),
                                         std::move(done));
  }
  Ask(name, [this, name, change = std::move(change),
             done = WithWarnings(std::move(done))](
                absl::StatusOr<NamespaceInfo> info) mutable {
    if (!info.ok()) return done(std::move(info));
    NamespaceOptions options = info->options;
    absl::Status changed = change(&options);
    if (!changed.ok()) return done(std::move(changed));
    // An old route that is kept is not checked.
    if (options.dead_letter_namespace == info->options.dead_letter_namespace) {
      options.dead_letter_namespace.clear();
    }
    CheckDeadLetterRoute(parts_.namespaces, name, options,
                         [this, name, change = std::move(change),
                          done = std::move(done)](absl::Status status) mutable {
                           if (!status.ok()) return done(std::move(status));
                           PassingStore::UpdateNamespace(
                               name, std::move(change), std::move(done));
                         });
  });
}

void LearningStore::GetNamespace(absl::string_view name,
                                 bool include_statistics,
                                 DoneWith<NamespaceInfo> done) {
  if (include_statistics || IsMapOnly(name)) {
    return PassingStore::GetNamespace(name, include_statistics,
                                      std::move(done));
  }
  Ask(name, std::move(done));
}

void LearningStore::DeleteNamespace(absl::string_view name, Done done) {
  PassingStore::DeleteNamespace(
      name, [this, name, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) parts_.directory->Forget(name);
        done(std::move(status));
      });
}

// --- Members.

// Of several namespaces each is joined by itself, where its home is.
void LearningStore::JoinGroups(absl::Span<const std::string> names,
                               Membership membership, Wake wake,
                               DoneWith<Readers> done) {
  if (names.size() == 1) {
    return PassingStore::JoinGroups(names, std::move(membership),
                                    std::move(wake), std::move(done));
  }
  WhenAllExist(
      this, names,
      [this, names, membership = std::move(membership), wake = std::move(wake),
       done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        GatherAll<Readers>(
            names.size(),
            [&](size_t i, DoneWith<Readers> joined) {
              PassingStore::JoinGroups(names.subspan(i, 1), membership, wake,
                                       std::move(joined));
            },
            [done = std::move(done)](
                absl::StatusOr<std::vector<Readers>> joined) mutable {
              if (!joined.ok()) return done(joined.status());
              Readers readers;
              for (Readers& each : *joined) {
                readers.push_back(std::move(each.front()));
              }
              done(std::move(readers));
            });
      });
}

}  // namespace timecache::server
