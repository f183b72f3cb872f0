#include "server/engine/registry.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/memory_reclaimer.h"
#include "server/engine/store/dead_letter_route.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {

namespace {

// Two logs of one name, before and after a restart, should have no number in
// common, whatever the clock says: each begins a range of 2^32 of its own.
// Below 2^53, for readers of JSON.
uint64_t RandomFirstEvent() {
  std::random_device random;
  return (std::uniform_int_distribution<uint64_t>(0, (1 << 20) - 1)(random)
          << 32) +
         1;
}

}  // namespace

absl::Status ValidateNamespace(absl::string_view name,
                               const NamespaceOptions& options) {
  if (absl::Status status = ValidateNamespaceName(name); !status.ok()) {
    return status;
  }
  if (absl::Status status = Validate(options); !status.ok()) return status;
  // To itself.
  return CheckDeadLetterRoute(name, options,
                              [](absl::string_view) { return std::nullopt; });
}

namespace {

// The same of a map, which may be a partition of the namespace.
absl::Status ValidateMap(absl::string_view name,
                         const NamespaceOptions& options) {
  if (absl::Status status = ValidateMapName(name); !status.ok()) return status;
  const PartitionPlace place = PlaceOf(name);
  absl::Status status = ValidateNamespace(place.namespace_name, options);
  if (status.ok() && place.partition >= options.num_partitions) {
    status =
        InvalidField("num_partitions",
                     absl::StrCat("is ", options.num_partitions,
                                  ": there is no partition ", place.partition));
  }
  return status;
}

absl::Status NamespaceExists(absl::string_view map_name) {
  return ErrorWithReason(
      absl::StatusCode::kAlreadyExists, Reason::kNamespaceExists,
      absl::StrCat("namespace ", PlaceOf(map_name).namespace_name, " exists"));
}

absl::Status NamespaceNotFound(absl::string_view map_name) {
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kNamespaceNotFound,
      absl::StrCat("namespace ", PlaceOf(map_name).namespace_name,
                   " does not exist"));
}

}  // namespace

Registry::Registry(const Clock* clock, Reaper* reaper,
                   std::shared_ptr<ServerAccount> account)
    : clock_(clock),
      reaper_(reaper),
      account_(std::move(account)),
      versions_(clock->NowUs()) {}

Registry::~Registry() {
  {
    absl::MutexLock lock(&letter_gate_->mu);
    letter_gate_->closed = true;
  }
  for (const auto& map : List()) {
    reaper_->Remove(map.get());
    map->Close();
  }
  {
    absl::ReaderMutexLock lock(&mu_);
    account_->SubtractNamespaces(namespaces_);
  }
  bin_->Close();
}

absl::StatusOr<std::shared_ptr<TimeCacheMap>> Registry::Create(
    absl::string_view name, const NamespaceOptions& options) {
  return Create(name, options, Limits::kObeyed);
}

absl::StatusOr<std::shared_ptr<TimeCacheMap>> Registry::CreateConfigured(
    absl::string_view name, const NamespaceOptions& options) {
  return Create(name, options, Limits::kIgnored);
}

absl::StatusOr<std::shared_ptr<TimeCacheMap>> Registry::Create(
    absl::string_view name, const NamespaceOptions& options, Limits limits) {
  if (absl::Status status = ValidateMap(name, options); !status.ok()) {
    return status;
  }
  const bool obeyed = limits == Limits::kObeyed;
  if (obeyed) {
    absl::Status status = MemoryReclaimer::Process().MakeRoom();
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckDurability(options.durability, journal_kind());
      !status.ok()) {
    return status;
  }
  const bool journaled = IsDurable(options);
  if (obeyed && journaled) {
    if (absl::Status status = change_logs_->CheckRoom(); !status.ok()) {
      return status;
    }
  }
  // One change at a time of where dead letters go.
  absl::MutexLock update_lock(&update_mu_);
  if (absl::Status status = CheckRoute(name, options); !status.ok()) {
    return status;
  }
  {
    // Before it costs the memory of an empty map.
    absl::ReaderMutexLock lock(&mu_);
    if (absl::Status status = CheckFree(name, limits); !status.ok()) {
      return status;
    }
  }
  auto map = Make(name, options,
                  {.first_event = RandomFirstEvent(), .journaled = journaled});
  absl::MutexLock lock(&mu_);
  if (absl::Status status = CheckFree(name, limits); !status.ok()) {
    return status;
  }
  if (absl::Status status = Insert(map, limits); !status.ok()) return status;
  return map;
}

// Whether there may be a map of this name.
absl::Status Registry::CheckFree(absl::string_view name, Limits limits) const {
  if (limits == Limits::kIgnored) return absl::OkStatus();
  if (maps_.contains(name) || maps_.contains(PlaceOf(name).namespace_name)) {
    return NamespaceExists(name);
  }
  return account_->CheckNamespaces();
}

std::optional<NamespaceOptions> Registry::OptionsOf(
    absl::string_view name) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto it = maps_.find(name);
  if (it == maps_.end()) return std::nullopt;
  return it->second->options();
}

absl::Status Registry::CheckRoute(absl::string_view name,
                                  const NamespaceOptions& options) const {
  if (!checks_routes_) return absl::OkStatus();
  return CheckDeadLetterRoute(
      PlaceOf(name).namespace_name, options,
      [this](absl::string_view to) { return OptionsOf(to); });
}

std::vector<std::string> Registry::Warnings(absl::string_view name) const {
  if (!checks_routes_) return {};
  const std::optional<NamespaceOptions> options = OptionsOf(name);
  if (!options.has_value()) return {};
  const auto maps = List();
  const auto senders =
      std::count_if(maps.begin(), maps.end(), [name](const auto& map) {
        return map->partition() == 0 &&
               map->options().dead_letter_namespace == name;
      });
  return DeadLetterWarnings(
      name, *options, static_cast<int>(senders),
      [this](absl::string_view to) { return OptionsOf(to); });
}

std::shared_ptr<TimeCacheMap> Registry::Make(absl::string_view name,
                                             const NamespaceOptions& options,
                                             TimeCacheMap::Origin origin) {
  origin.versions = &versions_;
  const std::shared_ptr<TimeCacheMap> map(
      new TimeCacheMap(std::string(name), options, account_->usage(),
                       clock_->NowUs(), origin),
      [bin = bin_, account = account_](TimeCacheMap* unused) {
        bin->Free(std::unique_ptr<TimeCacheMap>(unused));
      });
  // Until it is served.
  map->SetJoined(false);
  map->groups().SetDeadLetterSink(
      [this, from = std::weak_ptr<TimeCacheMap>(map)](
          const ConsumerGroups::DeadLetter& letter,
          ConsumerGroups::DeadLetterDone done) {
        PutDeadLetter(from.lock(), letter, std::move(done));
      });
  return map;
}

absl::Status Registry::Add(const std::shared_ptr<TimeCacheMap>& map) {
  absl::MutexLock lock(&mu_);
  return Insert(map, Limits::kIgnored);
}

absl::Status Registry::Insert(const std::shared_ptr<TimeCacheMap>& map,
                              Limits limits) {
  if (maps_.contains(map->name())) return NamespaceExists(map->name());
  if (map->partition() != 0) {
    // Its namespace counts.
  } else if (limits == Limits::kIgnored) {
    account_->AddNamespaceAnyway();
  } else if (absl::Status status = account_->AddNamespace(); !status.ok()) {
    return status;
  }
  map->SetJoined(true);
  // Before it can be found: its log starts with its description, and its first
  // put must be able to schedule.
  if (map->journaled() && map->change_log() == nullptr) {
    map->SetChangeLog(change_logs_->Begin(map));
  }
  reaper_->Add(map);
  maps_.emplace(map->name(), map);
  by_name_.emplace(map->name(), map);
  if (map->partition() != 0) return absl::OkStatus();
  ++namespaces_;
  if (const int count = map->options().num_partitions; count > 1) {
    partitioned_[map->name()] = PartitionNames(map->name(), count);
    partitioned_count_ = partitioned_.size();
  }
  return absl::OkStatus();
}

Registry::Names Registry::PartitionsOf(absl::string_view namespace_name) const {
  if (partitioned_count_.load(std::memory_order_acquire) == 0) return nullptr;
  absl::ReaderMutexLock lock(&mu_);
  const auto it = partitioned_.find(namespace_name);
  return it == partitioned_.end() ? nullptr : it->second;
}

absl::Status Registry::CheckDeadLetterRight(
    const ConsumerGroups::DeadLetter& letter) {
  absl::ReaderMutexLock lock(&dead_letter_mu_);
  return dead_letter_right_
             ? dead_letter_right_(letter.created_by, letter.to_map)
             : absl::OkStatus();
}

void Registry::SendDeadLetter(std::shared_ptr<TimeCacheMap> from,
                              const ConsumerGroups::DeadLetter& letter,
                              ConsumerGroups::DeadLetterDone done) {
  // What the call views.
  struct Letter {
    std::string to;
    std::string key;
    std::string value;
    Operation put;
    Result result;
  };
  auto sent = std::make_shared<Letter>();
  sent->to = std::string(letter.to_map);
  sent->key = letter.key;
  sent->value = letter.value;
  sent->put = Operation::DeadLetter(sent->key, sent->value);
  Letter& call = *sent;
  dead_letter_store_->Execute(
      call.to, {&call.put, 1}, {&call.result, 1},
      // The group's map must be there until `done` is gone.
      [from = std::move(from), gate = letter_gate_, sent = std::move(sent),
       when = when_to_settle_,
       done = std::move(done)](const absl::Status& called) mutable {
        absl::Status put = sent->result.status;
        // Nothing was tried: that says nothing of the letter.
        if (!called.ok()) put = absl::UnavailableError(called.message());
        auto settle = [from = std::move(from), gate = std::move(gate),
                       done = std::move(done), put]() mutable {
          absl::ReaderMutexLock lock(&gate->mu);
          auto end = std::exchange(done, nullptr);
          if (!gate->closed) end(put);
        };
        if (!when) return settle();
        when(std::move(settle));
      });
}

// Into the map that has that name now, or its partition of the letter's key, if the
// group's creator may put it there now: the name may belong to another map since,
// and the permission may be withdrawn.
void Registry::PutDeadLetter(std::shared_ptr<TimeCacheMap> from,
                             const ConsumerGroups::DeadLetter& letter,
                             ConsumerGroups::DeadLetterDone done) {
  if (absl::Status status = CheckDeadLetterRight(letter); !status.ok()) {
    return done(status);
  }
  if (dead_letter_store_ != nullptr) {
    return SendDeadLetter(std::move(from), letter, std::move(done));
  }
  const Names parts = PartitionsOf(letter.to_map);
  const absl::StatusOr<std::shared_ptr<TimeCacheMap>> map = Find(
      parts == nullptr ? letter.to_map
                       : (*parts)[static_cast<size_t>(PartitionOfKey(
                             letter.key, static_cast<int>(parts->size())))]);
  if (!map.ok()) return done(map.status());
  ChangeLog* const log = (*map)->change_log();
  absl::Status status = log == nullptr ? absl::OkStatus() : log->CheckRoom();
  if (status.ok()) {
    status = (*map)->PutDeadLetter(letter.key, letter.value, clock_->NowUs());
  }
  if (!status.ok() || log == nullptr) return done(status);
  // The group's map must be there until `done` is gone.
  log->WhenAllKept([from = std::move(from), map = *map,
                    done = std::move(done)](const absl::Status& kept) mutable {
    std::exchange(done, nullptr)(kept);
  });
}

void Registry::SetDeadLetterRight(DeadLetterRight right) {
  absl::MutexLock lock(&dead_letter_mu_);
  dead_letter_right_ = std::move(right);
}

absl::StatusOr<std::shared_ptr<TimeCacheMap>> Registry::Find(
    absl::string_view name) const {
  {
    absl::ReaderMutexLock lock(&mu_);
    const auto it = maps_.find(name);
    if (it != maps_.end()) return it->second;
  }
  if (absl::Status status = ValidateMapName(name); !status.ok()) return status;
  return NamespaceNotFound(name);
}

std::vector<std::shared_ptr<TimeCacheMap>> Registry::List() const {
  // No name is empty.
  return ListAfter("", std::numeric_limits<size_t>::max());
}

std::vector<std::shared_ptr<TimeCacheMap>> Registry::ListAfter(
    absl::string_view after, size_t most) const {
  std::vector<std::shared_ptr<TimeCacheMap>> maps;
  absl::ReaderMutexLock lock(&mu_);
  maps.reserve(std::min(most, by_name_.size()));
  for (auto it = by_name_.upper_bound(after);
       it != by_name_.end() && maps.size() < most; ++it) {
    maps.push_back(it->second);
  }
  return maps;
}

absl::StatusOr<std::shared_ptr<TimeCacheMap>> Registry::Update(
    absl::string_view name,
    const std::function<absl::Status(NamespaceOptions*)>& change) {
  absl::MutexLock lock(&update_mu_);
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> map = Find(name);
  if (!map.ok()) return map;
  const NamespaceOptions before = (*map)->options();
  NamespaceOptions options = before;
  if (absl::Status status = change(&options); !status.ok()) return status;
  if (absl::Status status = ValidateMap(name, options); !status.ok()) {
    return status;
  }
  if (options.durability != before.durability) {
    absl::Status status = CheckDurability(options.durability, journal_kind());
    if (!status.ok()) return status;
  }
  // What an older server allowed may stay as it is.
  if (options.dead_letter_namespace != before.dead_letter_namespace) {
    absl::Status status = CheckRoute(name, options);
    if (!status.ok()) return status;
  }
  (*map)->Update(options, clock_->NowUs());
  if (ChangeLog* const log = (*map)->change_log()) log->AppendOptions(options);
  return map;
}

absl::Status Registry::Delete(absl::string_view name,
                              std::shared_ptr<TimeCacheMap>* deleted) {
  absl::StatusOr<std::shared_ptr<TimeCacheMap>> map = Find(name);
  if (!map.ok()) return map.status();
  if (absl::Status status = DeleteMap(*map); !status.ok()) return status;
  if (deleted != nullptr) *deleted = *std::move(map);
  return absl::OkStatus();
}

absl::Status Registry::DeleteMap(const std::shared_ptr<TimeCacheMap>& map) {
  const std::string& name = map->name();
  {
    absl::MutexLock lock(&mu_);
    const auto it = maps_.find(name);
    if (it == maps_.end() || it->second != map) return NamespaceNotFound(name);
    by_name_.erase(name);
    maps_.erase(it);
    if (map->partition() == 0) {
      --namespaces_;
      account_->SubtractNamespaces(1);
      partitioned_.erase(name);
      partitioned_count_ = partitioned_.size();
    }
    // Before there can be another one of that name.
    if (ChangeLog* const log = map->change_log()) log->AppendDeleted();
  }
  reaper_->Remove(map.get());
  map->Close();
  return absl::OkStatus();
}

}  // namespace timecache::server
