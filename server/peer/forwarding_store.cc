#include "server/peer/forwarding_store.h"

#include <memory>

#include "server/base/error.h"

namespace timecache::server {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

template <typename Outcome>
struct ForwardingStore::Attempt
    : std::enable_shared_from_this<Attempt<Outcome>> {
  ForwardingStore* store;
  absl::AnyInvocable<void(Store*, absl::AnyInvocable<void(Outcome)>)> call;
  absl::AnyInvocable<void(Outcome)> done;
  int tries = 0;

  void Try() {
    ++tries;
    const absl::Status serves = store->check_service_();
    if (serves.ok()) return call(&store->own_, std::move(done));
    const ErrorMetadata metadata = MetadataOf(serves);
    const auto owner = metadata.find("owner_address");
    if (owner == metadata.end() || owner->second == store->own_address_) {
      return TryLater(serves);
    }
    call(store->peers_.At(owner->second),
         [self = this->shared_from_this()](Outcome outcome) {
           if (ReasonOf(StatusOf(outcome)) == Reason::kNotOwner) {
             return self->TryLater(std::move(outcome));
           }
           self->done(std::move(outcome));
         });
  }

  void TryLater(Outcome outcome) {
    if (tries >= kMaxTries) {
      // Where the caller may ask next: as a node says that does not forward.
      absl::Status serves = store->check_service_();
      return done(serves.ok() ? std::move(outcome)
                              : Outcome(std::move(serves)));
    }
    store->peers_.After(kLookAgain,
                        [self = this->shared_from_this()] { self->Try(); });
  }
};

template <typename Outcome>
void ForwardingStore::Run(
    absl::AnyInvocable<void(Store*, absl::AnyInvocable<void(Outcome)>)> call,
    absl::AnyInvocable<void(Outcome)> done) {
  // What the owner itself is asked costs no more than the question.
  if (check_service_().ok()) return call(&own_, std::move(done));
  const auto attempt = std::make_shared<Attempt<Outcome>>();
  attempt->store = this;
  attempt->call = std::move(call);
  attempt->done = std::move(done);
  attempt->Try();
}

// --- Entries.

void ForwardingStore::Execute(absl::string_view name,
                              absl::Span<const Operation> operations,
                              absl::Span<Result> results,
                              BatchProgress* progress, Done done) {
  if (check_service_().ok()) {
    return own_.Execute(name, operations, results, progress, std::move(done));
  }
  if (progress != nullptr && progress->reached > 0) {
    return done(ErrorWithReason(
        absl::StatusCode::kUnavailable, Reason::kOwnershipLost,
        "this node owned when it began to apply the operations, and does not "
        "any more: some of them may be applied"));
  }
  Run<absl::Status>(
      [=](Store* store, Done finish) {
        store->Execute(name, operations, results, progress, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::ExecuteAtomic(absl::string_view name,
                                    absl::Span<const Operation> operations,
                                    absl::Span<Result> results, Done done) {
  Run<absl::Status>(
      [=](Store* store, Done finish) {
        store->ExecuteAtomic(name, operations, results, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::GetSize(absl::string_view name,
                              DoneWith<NamespaceSize> done) {
  Run<absl::StatusOr<NamespaceSize>>(
      [=](Store* store, DoneWith<NamespaceSize> finish) {
        store->GetSize(name, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::Scan(absl::string_view name, absl::string_view prefix,
                           int max_entries, int64_t max_bytes,
                           ScanPosition* position, bool* more,
                           EntryVisitor visit, Done done) {
  Run<absl::Status>(
      [=, visit = std::move(visit)](Store* store, Done finish) {
        store->Scan(name, prefix, max_entries, max_bytes, position, more, visit,
                    std::move(finish));
      },
      std::move(done));
}

// --- Namespaces.

void ForwardingStore::CreateNamespace(absl::string_view name,
                                      NamespaceOptions options,
                                      DoneWith<NamespaceInfo> done) {
  Run<absl::StatusOr<NamespaceInfo>>(
      [name, options = std::move(options)](Store* store,
                                           DoneWith<NamespaceInfo> finish) {
        store->CreateNamespace(name, options, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::GetNamespace(absl::string_view name,
                                   bool include_statistics,
                                   DoneWith<NamespaceInfo> done) {
  Run<absl::StatusOr<NamespaceInfo>>(
      [=](Store* store, DoneWith<NamespaceInfo> finish) {
        store->GetNamespace(name, include_statistics, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::ListNamespaces(ListQuery query,
                                     DoneWith<Page<NamespaceInfo>> done) {
  Run<absl::StatusOr<Page<NamespaceInfo>>>(
      [query = std::move(query)](Store* store,
                                 DoneWith<Page<NamespaceInfo>> finish) {
        store->ListNamespaces(query, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::UpdateNamespace(absl::string_view name,
                                      OptionsChange<NamespaceOptions> change,
                                      DoneWith<NamespaceInfo> done) {
  Run<absl::StatusOr<NamespaceInfo>>(
      [name, change = std::move(change)](Store* store,
                                         DoneWith<NamespaceInfo> finish) {
        store->UpdateNamespace(name, change, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::DeleteNamespace(absl::string_view name, Done done) {
  Run<absl::Status>(
      [=](Store* store, Done finish) {
        store->DeleteNamespace(name, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::RotateNamespace(absl::string_view name,
                                      DoneWith<int64_t> done) {
  Run<absl::StatusOr<int64_t>>(
      [=](Store* store, DoneWith<int64_t> finish) {
        store->RotateNamespace(name, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::GetDeaths(absl::string_view name, DeathsQuery query,
                                DoneWith<DeathsAhead> done) {
  Run<absl::StatusOr<DeathsAhead>>(
      [=](Store* store, DoneWith<DeathsAhead> finish) {
        store->GetDeaths(name, query, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::GetHotKeys(absl::string_view name, size_t max_keys,
                                 DoneWith<HotKeys> done) {
  Run<absl::StatusOr<HotKeys>>(
      [=](Store* store, DoneWith<HotKeys> finish) {
        store->GetHotKeys(name, max_keys, std::move(finish));
      },
      std::move(done));
}

// --- Groups.

void ForwardingStore::CreateGroup(GroupName name, NewGroup group,
                                  DoneWith<GroupInfo> done) {
  Run<absl::StatusOr<GroupInfo>>(
      [name, group = std::move(group)](Store* store,
                                       DoneWith<GroupInfo> finish) {
        store->CreateGroup(name, group, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::GetGroup(GroupName name, bool include_statistics,
                               DoneWith<GroupInfo> done) {
  Run<absl::StatusOr<GroupInfo>>(
      [=](Store* store, DoneWith<GroupInfo> finish) {
        store->GetGroup(name, include_statistics, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::ListGroups(absl::string_view namespace_name,
                                 ListQuery query,
                                 DoneWith<Page<GroupInfo>> done) {
  Run<absl::StatusOr<Page<GroupInfo>>>(
      [namespace_name, query = std::move(query)](
          Store* store, DoneWith<Page<GroupInfo>> finish) {
        store->ListGroups(namespace_name, query, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::UpdateGroup(GroupName name,
                                  OptionsChange<GroupOptions> change,
                                  DoneWith<GroupInfo> done) {
  Run<absl::StatusOr<GroupInfo>>(
      [name, change = std::move(change)](Store* store,
                                         DoneWith<GroupInfo> finish) {
        store->UpdateGroup(name, change, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::DeleteGroup(GroupName name, Done done) {
  Run<absl::Status>(
      [=](Store* store, Done finish) {
        store->DeleteGroup(name, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::ListMembers(GroupName name,
                                  DoneWith<std::vector<MemberInfo>> done) {
  Run<absl::StatusOr<std::vector<MemberInfo>>>(
      [=](Store* store, DoneWith<std::vector<MemberInfo>> finish) {
        store->ListMembers(name, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::SeekGroup(GroupName name, LogPosition position, bool drop,
                                DoneWith<SeekResult> done) {
  Run<absl::StatusOr<SeekResult>>(
      [name, position = std::move(position), drop](
          Store* store, DoneWith<SeekResult> finish) {
        store->SeekGroup(name, position, drop, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::ListUnsettled(GroupName name, UnsettledQuery query,
                                    DoneWith<UnsettledPage> done) {
  Run<absl::StatusOr<UnsettledPage>>(
      [name, query = std::move(query)](Store* store,
                                       DoneWith<UnsettledPage> finish) {
        store->ListUnsettled(name, query, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::Settle(GroupName name,
                             absl::Span<const Settlement> settlements,
                             absl::Span<SettleResult> results, Done done) {
  Run<absl::Status>(
      [=](Store* store, Done finish) {
        store->Settle(name, settlements, results, std::move(finish));
      },
      std::move(done));
}

// --- Watches.

void ForwardingStore::OpenLogs(absl::Span<const std::string> names,
                               LogStart start, const LogPoints& points,
                               Wake wake, DoneWith<Readers> done) {
  Run<absl::StatusOr<Readers>>(
      [=, points = &points, wake = std::move(wake)](Store* store,
                                                    DoneWith<Readers> finish) {
        store->OpenLogs(names, start, *points, wake, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::OpenChanges(absl::Span<const std::string> names,
                                  LogStart start, const LogPoints& points,
                                  Wake wake, DoneWith<Readers> done) {
  Run<absl::StatusOr<Readers>>(
      [=, points = &points, wake = std::move(wake)](Store* store,
                                                    DoneWith<Readers> finish) {
        store->OpenChanges(names, start, *points, wake, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::JoinGroups(absl::Span<const std::string> names,
                                 Membership membership, Wake wake,
                                 DoneWith<Readers> done) {
  Run<absl::StatusOr<Readers>>(
      [names, membership = std::move(membership), wake = std::move(wake)](
          Store* store, DoneWith<Readers> finish) {
        store->JoinGroups(names, membership, wake, std::move(finish));
      },
      std::move(done));
}

void ForwardingStore::OpenExpiring(absl::Span<const std::string> names,
                                   ExpiringOptions options, Wake wake,
                                   DoneWith<Readers> done) {
  Run<absl::StatusOr<Readers>>(
      [names, options = std::move(options), wake = std::move(wake)](
          Store* store, DoneWith<Readers> finish) {
        store->OpenExpiring(names, options, wake, std::move(finish));
      },
      std::move(done));
}

}  // namespace timecache::server
