#include "server/peer/slot_store.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "server/base/error.h"
#include "server/engine/parts/gather.h"
#include "server/engine/parts/when_all_exist.h"
#include "server/engine/store/partitions.h"
#include "server/peer/slot_reader.h"

namespace timecache::server {

size_t SlotStore::SlotOf(absl::string_view name) const {
  return SlotOfMap(name, static_cast<uint32_t>(slots_.slots()));
}

// Of names that are in one.
size_t SlotStore::SlotOf(const About& about) const {
  return SlotOf(about.names.empty() ? about.name
                                    : absl::string_view(about.names.front()));
}

// --- Whom it asks.

SlotStore::Choice SlotStore::AtOnce(const About& about) {
  std::shared_ptr<Store> maps = slots_.Local(SlotOf(about));
  if (maps == nullptr) return {};
  Store* const here = Here(maps.get());
  return {.store = here, .kept = std::move(maps)};
}

void SlotStore::Next(std::shared_ptr<Call> call) {
  ++call->tries;
  const size_t slot = SlotOf(call->about);
  if (std::shared_ptr<Store> maps = slots_.Local(slot)) {
    Store* const here = Here(maps.get());
    return call->PassTo(here, std::move(maps));
  }
  if (peers_ == nullptr) return call->Fail(SlotNotServed(slots_, slot));
  const std::string owner = slots_.OwnerAddress(slot);
  if (owner.empty()) return TryLater(std::move(call));
  call->PassTo(There(owner));
}

bool SlotStore::Again(const std::shared_ptr<Call>& call,
                      const absl::Status& error) {
  if (peers_ == nullptr || ReasonOf(error) != Reason::kNotOwner) return false;
  TryLater(call);
  return true;
}

void SlotStore::TryLater(std::shared_ptr<Call> call) {
  if (call->tries >= kMaxTries || call->IsOld()) {
    // Where the caller may ask next.
    return call->Fail(SlotNotServed(slots_, SlotOf(call->about)));
  }
  peers_->After(kLookAgain, [this, call = std::move(call)] { Next(call); });
}

Store::Readers SlotStore::Keep(const About& about,
                               const std::shared_ptr<Store>& kept,
                               const Wake& wake, Readers readers) {
  const bool joins = about.turns == About::Turns::kOneAtATime;
  for (auto& reader : readers) {
    reader = std::make_unique<SlotReader>(
        &slots_, SlotOf(about), kept,
        joins ? SlotReader::Of::kGroup : SlotReader::Of::kLog,
        std::move(reader), wake);
  }
  return readers;
}

void SlotStore::Execute(absl::string_view name,
                        absl::Span<const Operation> operations,
                        absl::Span<Result> results, BatchProgress* progress,
                        Done done) {
  if (progress == nullptr || progress->reached == 0) {
    return PassingStore::Execute(name, operations, results, progress,
                                 std::move(done));
  }
  Choice here = AtOnce({.name = name});
  if (here.store == nullptr) return done(OwnershipLost());
  here.store->Execute(
      name, operations, results, progress,
      [kept = std::move(here.kept), done = std::move(done)](
          absl::Status status) mutable { done(std::move(status)); });
}

// --- Readers.

bool SlotStore::InOneSlot(absl::Span<const std::string> names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return SlotOf(name) == SlotOf(names.front());
  });
}

void SlotStore::OpenSplit(absl::Span<const std::string> names, const Wake& wake,
                          const OpenSome& open, DoneWith<Readers> done) {
  struct Part {
    std::vector<std::string> names;
    std::vector<size_t> places;
  };
  std::map<size_t, Part> by_slot;
  for (size_t i = 0; i < names.size(); ++i) {
    Part& part = by_slot[SlotOf(names[i])];
    part.names.push_back(names[i]);
    part.places.push_back(i);
  }
  const auto parts = std::make_shared<std::vector<Part>>();
  for (auto& [slot, part] : by_slot) parts->push_back(std::move(part));
  GatherAll<Readers>(
      parts->size(),
      [&](size_t i, DoneWith<Readers> opened) {
        open((*parts)[i].names, wake, std::move(opened));
      },
      [parts, count = names.size(), done = std::move(done)](
          absl::StatusOr<std::vector<Readers>> opened) mutable {
        if (!opened.ok()) return done(opened.status());
        Readers readers(count);
        for (size_t i = 0; i < parts->size(); ++i) {
          const std::vector<size_t>& places = (*parts)[i].places;
          for (size_t k = 0; k < places.size(); ++k) {
            readers[places[k]] = std::move((*opened)[i][k]);
          }
        }
        done(std::move(readers));
      });
}

void SlotStore::OpenLogs(absl::Span<const std::string> names, LogStart start,
                         const LogPoints& points, Wake wake,
                         DoneWith<Readers> done) {
  if (InOneSlot(names)) {
    return PassingStore::OpenLogs(names, start, points, std::move(wake),
                                  std::move(done));
  }
  OpenSplit(
      names, wake,
      [&](absl::Span<const std::string> some, Wake wake_of_some,
          DoneWith<Readers> opened) {
        PassingStore::OpenLogs(some, start, points, std::move(wake_of_some),
                               std::move(opened));
      },
      std::move(done));
}

void SlotStore::OpenChanges(absl::Span<const std::string> names, LogStart start,
                            const LogPoints& points, Wake wake,
                            DoneWith<Readers> done) {
  if (InOneSlot(names)) {
    return PassingStore::OpenChanges(names, start, points, std::move(wake),
                                     std::move(done));
  }
  OpenSplit(
      names, wake,
      [&](absl::Span<const std::string> some, Wake wake_of_some,
          DoneWith<Readers> opened) {
        PassingStore::OpenChanges(some, start, points, std::move(wake_of_some),
                                  std::move(opened));
      },
      std::move(done));
}

void SlotStore::OpenExpiring(absl::Span<const std::string> names,
                             ExpiringOptions options, Wake wake,
                             DoneWith<Readers> done) {
  if (InOneSlot(names)) {
    return PassingStore::OpenExpiring(names, std::move(options),
                                      std::move(wake), std::move(done));
  }
  OpenSplit(
      names, wake,
      [&](absl::Span<const std::string> some, Wake wake_of_some,
          DoneWith<Readers> opened) {
        PassingStore::OpenExpiring(some, options, std::move(wake_of_some),
                                   std::move(opened));
      },
      std::move(done));
}

// No group is made unless all namespaces are there.
void SlotStore::JoinGroups(absl::Span<const std::string> names,
                           Membership membership, Wake wake,
                           DoneWith<Readers> done) {
  if (InOneSlot(names)) {
    return PassingStore::JoinGroups(names, std::move(membership),
                                    std::move(wake), std::move(done));
  }
  WhenAllExist(
      this, names,
      [this, names, membership = std::move(membership), wake = std::move(wake),
       done = std::move(done)](absl::Status status) mutable {
        if (!status.ok()) return done(std::move(status));
        OpenSplit(
            names, wake,
            [&](absl::Span<const std::string> some, Wake wake_of_some,
                DoneWith<Readers> opened) {
              PassingStore::JoinGroups(
                  some, membership, std::move(wake_of_some), std::move(opened));
            },
            std::move(done));
      });
}

}  // namespace timecache::server
