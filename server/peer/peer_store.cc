#include "server/peer/peer_store.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/store/partitions.h"
#include "server/peer/peer_answer.h"

namespace timecache::server {
namespace {

absl::Status Malformed() {
  return absl::InternalError("a node's answer is malformed");
}

// Whether a batch changes nothing but, in a sliding namespace, when what it reads
// would die: which is then as of the last time that it was read.
bool OnlyReads(absl::Span<const Operation> operations) {
  return std::none_of(
      operations.begin(), operations.end(),
      [](const Operation& op) { return Writes(op, /*sliding=*/false); });
}

absl::Status ReadResults(const absl::StatusOr<std::string>& body,
                         absl::Span<Result> results) {
  if (!body.ok()) return body.status();
  FieldReader reader(*body);
  absl::Status status = ReadStatus(&reader);
  if (!status.ok()) return status;
  for (Result& result : results) {
    result.Clear();
    reader(result);
  }
  return reader.ok() ? absl::OkStatus() : Malformed();
}

std::vector<std::string> Copy(absl::Span<const std::string> names) {
  return {names.begin(), names.end()};
}

}  // namespace

template <typename... Fields>
std::string PeerStore::Body(PeerCall call, const Fields&... fields) const {
  const auto number = static_cast<uint8_t>(call);
  return WriteCall(of_ == Of::kMaps
                       ? number
                       : static_cast<uint8_t>(number | kWholeNamespace),
                   fields...);
}

std::string PeerStore::BatchBody(PeerCall call, absl::string_view name,
                                 absl::Span<const Operation> operations) const {
  FieldWriter writer(Body(call, name));
  WriteOperations(operations, &writer);
  return writer.Take();
}

template <typename Answer>
void PeerStore::Ask(bool reads, std::string&& body, DoneWith<Answer> done) {
  link_->Start(
      {.body = std::move(body),
       .reads = reads,
       .answered = [done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         done(ReadAnswer<Answer>(answer));
       }});
}

void PeerStore::Tell(std::string body, Done done) {
  link_->Start(
      {.body = std::move(body),
       .answered = [done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         done(ReadResults(answer, {}));
       }});
}

// --- Entries.

// In one turn, as the other node takes them.
void PeerStore::Execute(absl::string_view name,
                        absl::Span<const Operation> operations,
                        absl::Span<Result> results, BatchProgress* progress,
                        Done done) {
  std::function<void()> on_applied;
  if (progress != nullptr) on_applied = progress->on_applied;
  link_->Start(
      {.body = BatchBody(PeerCall::kExecute, name, operations),
       .reads = OnlyReads(operations),
       .on_applied = std::move(on_applied),
       .answered = [results, progress, done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         absl::Status status = ReadResults(answer, results);
         // After an error it may be made by another store.
         if (progress != nullptr && status.ok()) {
           progress->reached = results.size();
           progress->done = true;
         }
         done(std::move(status));
       }});
}

void PeerStore::ExecuteAtomic(absl::string_view name,
                              absl::Span<const Operation> operations,
                              absl::Span<Result> results, Done done) {
  link_->Start(
      {.body = BatchBody(PeerCall::kExecuteAtomic, name, operations),
       .reads = OnlyReads(operations),
       .answered = [results, done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         done(ReadResults(answer, results));
       }});
}

void PeerStore::GetSize(absl::string_view name, DoneWith<NamespaceSize> done) {
  Ask(true, Body(PeerCall::kGetSize, name), std::move(done));
}

void PeerStore::Scan(absl::string_view name, absl::string_view prefix,
                     int max_entries, int64_t max_bytes, ScanPosition* position,
                     bool* more, EntryVisitor visit, Done done) {
  link_->Start(
      {.body = Body(PeerCall::kScan, name, prefix, max_entries, max_bytes,
                    *position),
       .reads = true,
       .answered = [position, more, visit = std::move(visit),
                    done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         if (!answer.ok()) return done(answer.status());
         FieldReader reader(*answer);
         absl::Status status = ReadStatus(&reader);
         if (!status.ok()) return done(std::move(status));
         reader(*position, *more);
         while (reader.ok() && !reader.done()) {
           ScannedEntry entry;
           reader(entry);
           if (reader.ok()) visit(entry);
         }
         done(reader.ok() ? absl::OkStatus() : Malformed());
       }});
}

// --- Lists and updates: several calls, one after the other.

namespace {

// Calls `page` until the list has what was asked for.
template <typename Info>
struct Listing : std::enable_shared_from_this<Listing<Info>> {
  using AskPage = std::function<void(const ListQuery& query,
                                     Store::DoneWith<Page<Info>> done)>;

  ListQuery query;
  AskPage ask;
  Store::DoneWith<Page<Info>> done;
  Page<Info> page;

  void Next() {
    ListQuery next;
    next.after = query.after;
    next.most = std::min(query.most - page.items.size(), PeerStore::kListPage);
    next.include_statistics = query.include_statistics;
    next.namespaces_only = query.namespaces_only;
    next.slots = query.slots;
    ask(next, [self = this->shared_from_this()](
                  absl::StatusOr<Page<Info>> found) mutable {
      self->Add(std::move(found));
    });
  }

  void Add(absl::StatusOr<Page<Info>> found) {
    if (!found.ok()) return done(found.status());
    if (!found->items.empty()) query.after = found->items.back().name;
    for (Info& info : found->items) {
      if (query.visible && !query.visible(info.name)) continue;
      page.items.push_back(std::move(info));
    }
    page.more = found->more;
    // Statistics are costly: a page of them may be shorter.
    const bool enough = query.include_statistics && !page.items.empty();
    if (!page.more || enough || found->items.empty() ||
        page.items.size() >= query.most) {
      return done(std::move(page));
    }
    Next();
  }
};

template <typename Info>
void List(ListQuery&& query, typename Listing<Info>::AskPage ask,
          Store::DoneWith<Page<Info>> done) {
  const auto listing = std::make_shared<Listing<Info>>();
  listing->query = std::move(query);
  listing->ask = std::move(ask);
  listing->done = std::move(done);
  listing->Next();
}

// Asks for the options, changes them, and sends both, until they were not changed
// meanwhile.
template <typename Info, typename Options>
struct Updating : std::enable_shared_from_this<Updating<Info, Options>> {
  std::function<void(Store::DoneWith<Info>)> get;
  std::function<void(const Options& seen, const Options& wanted,
                     Store::DoneWith<UpdateAnswer<Info>>)>
      set;
  OptionsChange<Options> change;
  Store::DoneWith<Info> done;
  int tries = 0;

  void Next() {
    if (++tries > PeerStore::kMaxUpdates) {
      return done(absl::UnavailableError(
          "others changed the options all the time: try again"));
    }
    get([self = this->shared_from_this()](absl::StatusOr<Info> seen) {
      self->Change(std::move(seen));
    });
  }

  void Change(absl::StatusOr<Info> seen) {
    if (!seen.ok()) return done(seen.status());
    Options wanted = seen->options;
    absl::Status status = change(&wanted);
    if (!status.ok()) return done(std::move(status));
    set(seen->options, wanted,
        [self = this->shared_from_this()](
            absl::StatusOr<UpdateAnswer<Info>> answer) {
          if (!answer.ok()) return self->done(answer.status());
          if (answer->changed) return self->Next();
          self->done(std::move(answer->info));
        });
  }
};

}  // namespace

// --- Namespaces.

void PeerStore::CreateNamespace(absl::string_view name,
                                NamespaceOptions options,
                                DoneWith<NamespaceInfo> done) {
  Ask(false, Body(PeerCall::kCreateNamespace, name, options), std::move(done));
}

void PeerStore::GetNamespace(absl::string_view name, bool include_statistics,
                             DoneWith<NamespaceInfo> done) {
  Ask(true, Body(PeerCall::kGetNamespace, name, include_statistics),
      std::move(done));
}

void PeerStore::ListNamespaces(ListQuery query,
                               DoneWith<Page<NamespaceInfo>> done) {
  List<NamespaceInfo>(
      std::move(query),
      [this](const ListQuery& page, DoneWith<Page<NamespaceInfo>> found) {
        Ask(true, Body(PeerCall::kListNamespaces, page), std::move(found));
      },
      std::move(done));
}

void PeerStore::UpdateNamespace(absl::string_view name,
                                OptionsChange<NamespaceOptions> change,
                                DoneWith<NamespaceInfo> done) {
  const auto update =
      std::make_shared<Updating<NamespaceInfo, NamespaceOptions>>();
  update->get = [this, name](DoneWith<NamespaceInfo> got) {
    GetNamespace(name, false, std::move(got));
  };
  update->set = [this, name](const NamespaceOptions& seen,
                             const NamespaceOptions& wanted,
                             DoneWith<UpdateAnswer<NamespaceInfo>> updated) {
    Ask(false, Body(PeerCall::kUpdateNamespace, name, seen, wanted),
        std::move(updated));
  };
  update->change = std::move(change);
  update->done = std::move(done);
  update->Next();
}

void PeerStore::DeleteNamespace(absl::string_view name, Done done) {
  Tell(Body(PeerCall::kDeleteNamespace, name), std::move(done));
}

void PeerStore::RotateNamespace(absl::string_view name,
                                DoneWith<int64_t> done) {
  Ask(false, Body(PeerCall::kRotateNamespace, name), std::move(done));
}

void PeerStore::GetDeaths(absl::string_view name, DeathsQuery query,
                          DoneWith<DeathsAhead> done) {
  Ask(true, Body(PeerCall::kGetDeaths, name, query), std::move(done));
}

void PeerStore::GetHotKeys(absl::string_view name, size_t max_keys,
                           DoneWith<HotKeys> done) {
  Ask(true, Body(PeerCall::kGetHotKeys, name, max_keys), std::move(done));
}

// --- Groups.

void PeerStore::CreateGroup(GroupName name, NewGroup group,
                            DoneWith<GroupInfo> done) {
  Ask(false, Body(PeerCall::kCreateGroup, name, group), std::move(done));
}

void PeerStore::GetGroup(GroupName name, bool include_statistics,
                         DoneWith<GroupInfo> done) {
  Ask(true, Body(PeerCall::kGetGroup, name, include_statistics),
      std::move(done));
}

void PeerStore::ListGroups(absl::string_view namespace_name, ListQuery query,
                           DoneWith<Page<GroupInfo>> done) {
  List<GroupInfo>(
      std::move(query),
      [this, namespace_name](const ListQuery& page,
                             DoneWith<Page<GroupInfo>> found) {
        Ask(true, Body(PeerCall::kListGroups, namespace_name, page),
            std::move(found));
      },
      std::move(done));
}

void PeerStore::UpdateGroup(GroupName name, OptionsChange<GroupOptions> change,
                            DoneWith<GroupInfo> done) {
  const auto update = std::make_shared<Updating<GroupInfo, GroupOptions>>();
  update->get = [this, name](DoneWith<GroupInfo> got) {
    GetGroup(name, false, std::move(got));
  };
  update->set = [this, name](const GroupOptions& seen,
                             const GroupOptions& wanted,
                             DoneWith<UpdateAnswer<GroupInfo>> updated) {
    Ask(false, Body(PeerCall::kUpdateGroup, name, seen, wanted),
        std::move(updated));
  };
  update->change = std::move(change);
  update->done = std::move(done);
  update->Next();
}

void PeerStore::DeleteGroup(GroupName name, Done done) {
  Tell(Body(PeerCall::kDeleteGroup, name), std::move(done));
}

void PeerStore::ListMembers(GroupName name,
                            DoneWith<std::vector<MemberInfo>> done) {
  Ask(true, Body(PeerCall::kListMembers, name), std::move(done));
}

void PeerStore::SeekGroup(GroupName name, LogPosition position, bool drop,
                          DoneWith<SeekResult> done) {
  Ask(false, Body(PeerCall::kSeekGroup, name, position, drop), std::move(done));
}

void PeerStore::ListUnsettled(GroupName name, UnsettledQuery query,
                              DoneWith<UnsettledPage> done) {
  link_->Start(
      {.body = Body(PeerCall::kListUnsettled, name, query),
       .reads = true,
       .answered =
           [ns = std::string(PlaceOf(name.namespace_name).namespace_name),
            done = std::move(done)](
               const absl::StatusOr<std::string>& answer) mutable {
             if (!answer.ok()) return done(answer.status());
             FieldReader reader(*answer);
             absl::Status status = ReadStatus(&reader);
             if (!status.ok()) return done(std::move(status));
             UnsettledPage page;
             if (!ReadUnsettled(ns, &reader, &page)) {
               return done(Malformed());
             }
             done(std::move(page));
           }});
}

void PeerStore::Settle(GroupName name, absl::Span<const Settlement> settlements,
                       absl::Span<SettleResult> results, Done done) {
  link_->Start(
      {.body = Body(
           PeerCall::kSettle, name,
           std::vector<Settlement>(settlements.begin(), settlements.end())),
       .answered = [results, done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         if (!answer.ok()) return done(answer.status());
         FieldReader reader(*answer);
         absl::Status status = ReadStatus(&reader);
         if (!status.ok()) return done(std::move(status));
         for (SettleResult& result : results) reader(result);
         done(reader.ok() ? absl::OkStatus() : Malformed());
       }});
}

// --- Watches.

void PeerStore::Open(absl::Span<const std::string> names, PeerReaderKind kind,
                     const Wake& wake, std::string body, DoneWith<Readers> done,
                     const std::shared_ptr<InFlightLimit>& in_flight) {
  std::vector<std::shared_ptr<ReceivedChunks>> chunks;
  std::vector<std::shared_ptr<PeerReader>> readers;
  for (const std::string& name : names) {
    // Of the namespace, whatever its map is called.
    chunks.push_back(std::make_shared<ReceivedChunks>(
        std::string(PlaceOf(name).namespace_name), kind, wake, in_flight));
    readers.push_back(chunks.back());
  }
  link_->Start(
      {.body = std::move(body),
       .reads = true,
       .readers = std::move(readers),
       .answered = [link = link_, chunks = std::move(chunks),
                    done = std::move(done)](
                       const absl::StatusOr<std::string>& answer) mutable {
         if (!answer.ok()) return done(answer.status());
         FieldReader reader(*answer);
         uint64_t first = 0;
         reader(first);
         absl::Status status = ReadStatus(&reader);
         // They close what is open there, whatever becomes of them.
         Readers opened;
         for (const auto& each : chunks) {
           opened.push_back(
               std::make_unique<RemoteReader>(link, first++, each));
         }
         if (!status.ok()) return done(std::move(status));
         for (const auto& each : chunks) {
           PeerChunk chunk;
           if (!ReadChunk(each->name(), &reader, &chunk) ||
               !each->Begin(std::move(chunk))) {
             return done(Malformed());
           }
         }
         done(std::move(opened));
       }});
}

void PeerStore::OpenLogs(absl::Span<const std::string> names, LogStart start,
                         const LogPoints& points, Wake wake,
                         DoneWith<Readers> done) {
  Open(names, PeerReaderKind::kLog, wake,
       Body(PeerCall::kOpenLogs, Copy(names), start, points), std::move(done));
}

void PeerStore::OpenChanges(absl::Span<const std::string> names, LogStart start,
                            const LogPoints& points, Wake wake,
                            DoneWith<Readers> done) {
  Open(names, PeerReaderKind::kLog, wake,
       Body(PeerCall::kOpenChanges, Copy(names), start, points),
       std::move(done));
}

void PeerStore::JoinGroups(absl::Span<const std::string> names,
                           Membership membership, Wake wake,
                           DoneWith<Readers> done) {
  PeerReaderKind kind =
      membership.fetches ? PeerReaderKind::kFetch : PeerReaderKind::kMember;
  if (membership.in_several()) {
    kind = membership.fetches ? PeerReaderKind::kPartOfFetch
                              : PeerReaderKind::kPartOfMember;
  }
  Open(names, kind, wake, Body(PeerCall::kJoinGroups, Copy(names), membership),
       std::move(done), membership.in_flight);
}

void PeerStore::OpenExpiring(absl::Span<const std::string> names,
                             ExpiringOptions options, Wake wake,
                             DoneWith<Readers> done) {
  Open(names, PeerReaderKind::kLog, wake,
       Body(PeerCall::kOpenExpiring, Copy(names), options), std::move(done));
}

}  // namespace timecache::server
