#include "server/rpc/peer/hosted_call.h"

#include <utility>

#include "absl/types/span.h"
#include "server/base/error.h"
#include "server/rpc/peer/peer_stream.h"

namespace timecache::server {
namespace {

absl::Status UnknownCall() {
  return absl::UnimplementedError(
      "another node, of another version, made a call that this one does not "
      "know");
}

// Of a reader of a log at its start.
std::vector<PeerGrant> LogGrants() {
  return std::vector<PeerGrant>(size_t{kMaxPeerChunks});
}

}  // namespace

HostedCall::HostedCall(std::shared_ptr<PeerStream> stream, uint64_t id,
                       std::string body)
    : stream_(std::move(stream)),
      store_(stream_->parts().store),
      id_(id),
      body_(std::move(body)),
      arguments_(body_) {}

HostedCall::~HostedCall() {
  if (batch_ != nullptr) Buffers::Give(std::move(batch_));
}

void HostedCall::Start(std::shared_ptr<PeerStream> stream, uint64_t id,
                       std::string body) {
  std::make_shared<HostedCall>(std::move(stream), id, std::move(body))->Make();
}

void HostedCall::Make() {
  uint8_t number = 0;
  arguments_(number);
  call_ = static_cast<PeerCall>(number & ~kWholeNamespace);
  if ((number & kWholeNamespace) != 0) store_ = stream_->parts().whole_store;
  if (store_ == nullptr) return Refuse(UnknownCall());
  absl::Status serves = stream_->CheckCall();
  if (!serves.ok()) return Refuse(serves);
  if (call_ <= PeerCall::kScan) {
    MakeEntryCall();
  } else if (call_ <= PeerCall::kGetHotKeys) {
    MakeNamespaceCall();
  } else if (call_ <= PeerCall::kSettle) {
    MakeGroupCall();
  } else {
    MakeReaderCall();
  }
}

// --- Answers.

bool HostedCall::Understood() {
  if (arguments_.ok()) return true;
  Refuse(absl::InternalError("another node's call is malformed"));
  return false;
}

void HostedCall::Refuse(const absl::Status& status) {
  FieldWriter body;
  if (opens()) body(id_ + 1);
  WriteStatus(status, &body);
  Answer(&body);
}

PeerFrame HostedCall::AnswerOf(FieldWriter* body) const {
  return {id_, peer::v1::FRAME_KIND_ANSWER,
          std::make_shared<const std::string>(body->Take())};
}

void HostedCall::Answer(FieldWriter* body) { stream_->Answer(AnswerOf(body)); }

template <typename Answered>
Store::DoneWith<Answered> HostedCall::WhenDone() {
  return [self = shared_from_this()](absl::StatusOr<Answered> answer) {
    if (!answer.ok()) return self->Refuse(answer.status());
    FieldWriter body;
    WriteStatus(absl::OkStatus(), &body);
    body(*answer);
    self->Answer(&body);
  };
}

Store::Done HostedCall::WhenTold() {
  return [self = shared_from_this()](const absl::Status& status) {
    self->Refuse(status);
  };
}

// --- Entries.

void HostedCall::MakeEntryCall() {
  arguments_(name_);
  switch (call_) {
    case PeerCall::kExecute:
    case PeerCall::kExecuteAtomic:
      return ExecuteBatch();
    case PeerCall::kGetSize:
      if (Understood()) store_->GetSize(name_, WhenDone<NamespaceSize>());
      return;
    case PeerCall::kScan:
      return Scan();
    default:
      return Refuse(UnknownCall());
  }
}

void HostedCall::ExecuteBatch() {
  batch_ = Buffers::Take();
  if (!batch_->request.Read(&arguments_)) {
    return Refuse(absl::InternalError("another node's call is malformed"));
  }
  batch_->results.resize(batch_->request.operations.size());
  return call_ == PeerCall::kExecute ? Execute() : ExecuteAtomic();
}

// A turn.
void HostedCall::Execute() {
  if (!progress_.on_applied) {
    progress_.on_applied = [this] {
      stream_->Send({id_, peer::v1::FRAME_KIND_APPLIED, nullptr});
    };
  }
  store_->Execute(name_, batch_->request.operations,
                  absl::MakeSpan(batch_->results), &progress_,
                  [self = shared_from_this()](const absl::Status& status) {
                    if (!status.ok()) return self->Refuse(status);
                    if (!self->progress_.done) {
                      self->stream_->parts().executor->Add(self->name_, self);
                      return;
                    }
                    FieldWriter body;
                    WriteStatus(status, &body);
                    WriteResults(self->batch_->results, &body);
                    self->Answer(&body);
                  });
}

bool HostedCall::TakeTurn() {
  Execute();
  return false;
}

void HostedCall::ExecuteAtomic() {
  store_->ExecuteAtomic(
      name_, batch_->request.operations, absl::MakeSpan(batch_->results),
      [self = shared_from_this()](const absl::Status& status) {
        if (!status.ok()) return self->Refuse(status);
        FieldWriter body;
        WriteStatus(status, &body);
        WriteResults(self->batch_->results, &body);
        self->Answer(&body);
      });
}

void HostedCall::Scan() {
  absl::string_view prefix;
  int max_entries = 0;
  int64_t max_bytes = 0;
  arguments_(prefix, max_entries, max_bytes, position_);
  if (!Understood()) return;
  store_->Scan(
      name_, prefix, max_entries, max_bytes, &position_, &more_,
      [this](const ScannedEntry& entry) { entries_(entry); },
      [self = shared_from_this()](const absl::Status& status) {
        if (!status.ok()) return self->Refuse(status);
        FieldWriter body;
        WriteStatus(status, &body);
        body(self->position_, self->more_);
        body.Append(self->entries_.Take());
        self->Answer(&body);
      });
}

// --- Namespaces.

void HostedCall::MakeNamespaceCall() {
  if (call_ == PeerCall::kListNamespaces) {
    ListQuery query;
    arguments_(query);
    if (Understood()) {
      store_->ListNamespaces(query, WhenDone<Page<NamespaceInfo>>());
    }
    return;
  }
  arguments_(name_);
  switch (call_) {
    case PeerCall::kCreateNamespace: {
      NamespaceOptions options;
      arguments_(options);
      if (Understood()) {
        store_->CreateNamespace(name_, options, WhenDone<NamespaceInfo>());
      }
      return;
    }
    case PeerCall::kGetNamespace: {
      bool include_statistics = false;
      arguments_(include_statistics);
      if (Understood()) {
        store_->GetNamespace(name_, include_statistics,
                             WhenDone<NamespaceInfo>());
      }
      return;
    }
    case PeerCall::kUpdateNamespace:
      return Update<NamespaceInfo, NamespaceOptions>(name_,
                                                     &Store::UpdateNamespace);
    case PeerCall::kDeleteNamespace:
      if (Understood()) store_->DeleteNamespace(name_, WhenTold());
      return;
    case PeerCall::kRotateNamespace:
      if (Understood()) store_->RotateNamespace(name_, WhenDone<int64_t>());
      return;
    case PeerCall::kGetDeaths: {
      DeathsQuery query;
      arguments_(query);
      if (Understood()) {
        store_->GetDeaths(name_, query, WhenDone<DeathsAhead>());
      }
      return;
    }
    default: {
      size_t max_keys = 0;
      arguments_(max_keys);
      if (Understood()) {
        store_->GetHotKeys(name_, max_keys, WhenDone<HotKeys>());
      }
      return;
    }
  }
}

// Only if the options are those that the other node has seen.
template <typename Info, typename Options, typename Name>
void HostedCall::Update(Name name,
                        void (Store::*update)(Name, OptionsChange<Options>,
                                              Store::DoneWith<Info>)) {
  Options seen;
  Options wanted;
  arguments_(seen, wanted);
  if (!Understood()) return;
  const auto changed = std::make_shared<bool>(false);
  (store_->*update)(
      name,
      [seen = WrittenOptions(seen), wanted, changed](Options* options) {
        *changed = WrittenOptions(*options) != seen;
        if (*changed) return absl::AbortedError("the options have changed");
        *options = wanted;
        return absl::OkStatus();
      },
      [self = shared_from_this(), changed](absl::StatusOr<Info> info) {
        if (!info.ok() && !*changed) return self->Refuse(info.status());
        UpdateAnswer<Info> answer;
        answer.changed = !info.ok();
        if (info.ok()) answer.info = *std::move(info);
        FieldWriter body;
        WriteStatus(absl::OkStatus(), &body);
        body(answer);
        self->Answer(&body);
      });
}

// --- Groups.

void HostedCall::MakeGroupCall() {
  if (call_ == PeerCall::kListGroups) {
    ListQuery query;
    arguments_(name_, query);
    if (Understood()) {
      store_->ListGroups(name_, query, WhenDone<Page<GroupInfo>>());
    }
    return;
  }
  arguments_(group_);
  switch (call_) {
    case PeerCall::kCreateGroup: {
      NewGroup group;
      arguments_(group);
      if (Understood()) {
        store_->CreateGroup(group_, group, WhenDone<GroupInfo>());
      }
      return;
    }
    case PeerCall::kGetGroup: {
      bool include_statistics = false;
      arguments_(include_statistics);
      if (Understood()) {
        store_->GetGroup(group_, include_statistics, WhenDone<GroupInfo>());
      }
      return;
    }
    case PeerCall::kUpdateGroup:
      return Update<GroupInfo, GroupOptions>(group_, &Store::UpdateGroup);
    case PeerCall::kDeleteGroup:
      if (Understood()) store_->DeleteGroup(group_, WhenTold());
      return;
    case PeerCall::kListMembers:
      if (Understood()) {
        store_->ListMembers(group_, WhenDone<std::vector<MemberInfo>>());
      }
      return;
    case PeerCall::kSeekGroup: {
      LogPosition position;
      bool drop = false;
      arguments_(position, drop);
      if (Understood()) {
        store_->SeekGroup(group_, position, drop, WhenDone<SeekResult>());
      }
      return;
    }
    case PeerCall::kListUnsettled: {
      UnsettledQuery query;
      arguments_(query);
      if (!Understood()) return;
      return store_->ListUnsettled(
          group_, query,
          [self = shared_from_this()](absl::StatusOr<UnsettledPage> page) {
            if (!page.ok()) return self->Refuse(page.status());
            FieldWriter body;
            WriteStatus(absl::OkStatus(), &body);
            WriteUnsettled(*page, &body);
            self->Answer(&body);
          });
    }
    default:
      return Settle();
  }
}

void HostedCall::Settle() {
  arguments_(settlements_);
  if (!Understood()) return;
  settled_.resize(settlements_.size());
  store_->Settle(group_, settlements_, absl::MakeSpan(settled_),
                 [self = shared_from_this()](const absl::Status& status) {
                   if (!status.ok()) return self->Refuse(status);
                   FieldWriter body;
                   WriteStatus(status, &body);
                   for (const SettleResult& result : self->settled_) {
                     body(result);
                   }
                   self->Answer(&body);
                 });
}

// --- Readers.

void HostedCall::MakeReaderCall() {
  arguments_(names_);
  wake_ = std::make_shared<HostedWake>(stream_->parts().hub);
  const Store::Wake wake = [woken = wake_] { woken->Wake(); };
  switch (call_) {
    case PeerCall::kOpenLogs:
    case PeerCall::kOpenChanges: {
      LogStart start = LogStart::kNow;
      arguments_(start, points_);
      if (!Understood()) return;
      if (call_ == PeerCall::kOpenLogs) {
        return store_->OpenLogs(names_, start, points_, wake,
                                WhenOpen({.grants = LogGrants()}));
      }
      return store_->OpenChanges(names_, start, points_, wake,
                                 WhenOpen({.grants = LogGrants()}));
    }
    case PeerCall::kJoinGroups: {
      Membership membership;
      arguments_(membership);
      if (!Understood()) return;
      return Join(std::move(membership));
    }
    case PeerCall::kOpenExpiring: {
      ExpiringOptions options;
      arguments_(options);
      if (!Understood()) return;
      return store_->OpenExpiring(names_, options, wake,
                                  WhenOpen({.grants = LogGrants()}));
    }
    default:
      return Refuse(UnknownCall());
  }
}

void HostedCall::Join(Membership membership) {
  Store::Wake wake = [woken = wake_] { woken->Wake(); };
  HostedReader::Of of = {.fetches = membership.fetches,
                         .once = membership.fetches && !membership.waits};
  if (membership.in_several()) {
    of.part = std::make_shared<HostedPart>();
    if (!membership.fetches) {
      of.part->in_flight = std::make_shared<InFlightLimit>(0, wake);
    }
    membership.in_flight = of.part->in_flight;
    wake = [woken = wake_, part = of.part] {
      part->woken.store(true);
      woken->Wake();
    };
  } else {
    PeerGrant grant;
    if (membership.fetches) grant.events = membership.max_in_flight;
    of.grants = {grant};
  }
  store_->JoinGroups(names_, std::move(membership), std::move(wake),
                     WhenOpen(std::move(of)));
}

// What they have now goes with the answer: their caller knows at once where it
// stands.
Store::DoneWith<Store::Readers> HostedCall::WhenOpen(HostedReader::Of all) {
  return [self = shared_from_this(),
          all = std::move(all)](absl::StatusOr<Store::Readers> opened) {
    if (!opened.ok()) return self->Refuse(opened.status());
    WatchHub* const hub = self->stream_->parts().hub;
    std::vector<std::shared_ptr<HostedReader>> readers;
    absl::Status status;
    for (size_t i = 0; i < opened->size(); ++i) {
      HostedReader::Of of = all;
      of.id = self->id_ + 1 + i;
      of.name = self->names_[i];
      readers.push_back(
          std::make_shared<HostedReader>(std::move(of), std::move((*opened)[i]),
                                         self->stream_, self->wake_, hub));
      status.Update(
          hub->Add(readers.back(),
                   {.flow = self->names_[i], .heartbeats = 0, .waits = false}));
    }
    if (!status.ok() || !self->stream_->AddReaders(readers)) {
      for (const auto& reader : readers) reader->Close();
      return self->Refuse(status);
    }
    FieldWriter body;
    body(self->id_ + 1);
    WriteStatus(status, &body);
    for (const auto& reader : readers) WriteChunk(reader->ReadFirst(), &body);
    self->stream_->Send(self->AnswerOf(&body));
    for (const auto& reader : readers) reader->Begin();
    // Last: the hub is there until then.
    self->stream_->EndCall();
  };
}

}  // namespace timecache::server
