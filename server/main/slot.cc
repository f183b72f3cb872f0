#include "server/main/slot.h"

#include <utility>

#include "server/main/cluster_events.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A node that was paused, or came back, is wanted again soon.
constexpr std::chrono::seconds kUnwantedPatience{2};
// From a journal that could not be opened to the next try.
constexpr absl::Duration kOpenInterval = absl::Seconds(1);
// How often a slot that is served is looked after.
constexpr absl::Duration kServeInterval = absl::Milliseconds(100);
constexpr std::chrono::seconds kSlotLookInterval{1};
// For what was acknowledged to be stored, and the release to be in the log.
constexpr absl::Duration kSlotReleasePatience = absl::Seconds(2);

}  // namespace

Slot::Slot(int number, const Host* host)
    : number_(number),
      host_(*host),
      patience_(kSlotReleasePatience),
      thread_([this] { Run(); }) {}

Slot::~Slot() {
  BeginEnd(kSlotReleasePatience);
  End();
}

void Slot::Want(bool wanted, const std::string& move_to) {
  absl::MutexLock lock(&mu_);
  poked_ |= wanted_ != wanted || move_to_ != move_to;
  wanted_ = wanted;
  move_to_ = move_to;
  if (wanted) {
    unwanted_since_.reset();
  } else if (!unwanted_since_.has_value()) {
    unwanted_since_ = SteadyClock::now();
  }
  if (poked_) changed_.SignalAll();
}

void Slot::BeginEnd(absl::Duration patience) {
  absl::MutexLock lock(&mu_);
  if (!ending_) patience_ = patience;
  ending_ = true;
  changed_.SignalAll();
}

void Slot::End() {
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<SlotMaps> Slot::serving() const {
  absl::ReaderMutexLock lock(&serving_mu_);
  return serving_;
}

void Slot::Pause(absl::Duration most) {
  absl::MutexLock lock(&mu_);
  if (!poked_ && !ending_) {
    changed_.WaitFor(&mu_, absl::ToChronoMicroseconds(most));
  }
  poked_ = false;
}

bool Slot::AwaitWanted() {
  absl::MutexLock lock(&mu_);
  while (!wanted_ && !ending_) changed_.Wait(&mu_);
  return !ending_;
}

bool Slot::IsUnwanted() {
  absl::MutexLock lock(&mu_);
  return ending_ || (unwanted_since_.has_value() &&
                     SteadyClock::now() - *unwanted_since_ > kUnwantedPatience);
}

void Slot::Run() {
  while (AwaitWanted()) {
    const auto opened = host_.open(number_, [this] {
      absl::MutexLock lock(&mu_);
      poked_ = true;
      changed_.SignalAll();
    });
    if (!opened.ok()) {
      LogOfSlot(number_, LogLevel::kWarning, "slot_not_opened",
                {{"why", opened.status().message()}});
      Pause(kOpenInterval);
      continue;
    }
    const std::shared_ptr<SlotMaps>& maps = *opened;
    Live(maps);
    maps->term->Leave();
    // As a node that does not replay it.
    host_.cluster->membership().Renew(number_);
  }
}

void Slot::Live(const std::shared_ptr<SlotMaps>& maps) {
  const absl::Status followed =
      maps->term->Follow([this] { return IsUnwanted(); }, {}, &maps->clock,
                         maps->logs.get(), &maps->registry);
  if (followed.ok()) {
    maps->checkpointer = std::make_unique<Checkpointer>(
        maps->logs.get(), &maps->registry, &maps->clock);
    const absl::Status prepared = host_.prepare(number_, maps.get());
    if (prepared.ok()) return Serve(maps);
    LogOfSlot(number_, LogLevel::kError, "slot_not_served",
              {{"why", prepared.message()}});
  } else if (!absl::IsCancelled(followed)) {
    LogOfSlot(number_, LogLevel::kError, "slot_not_replayed",
              {{"why", followed.message()}});
  }
  maps->term->Release(maps->registry, maps->logs.get(), kSlotReleasePatience);
  if (!absl::IsCancelled(followed)) Pause(kOpenInterval);
}

void Slot::Serve(const std::shared_ptr<SlotMaps>& maps) {
  ClusterTerm& term = *maps->term;
  term.Serve();
  SetServing(maps);
  auto looked = SteadyClock::now();
  absl::Duration patience = kSlotReleasePatience;
  while (!term.IsOver()) {
    std::string move_to;
    {
      absl::MutexLock lock(&mu_);
      if (ending_) {
        patience = patience_;
        break;
      }
      move_to = move_to_;
    }
    // It is not told to one that is not ready.
    if (!move_to.empty()) {
      term.HandOver(move_to, [](const absl::StatusOr<std::string>&) {});
      if (term.IsOver()) break;
    }
    term.AbandonCalls(maps->registry, maps->logs.get());
    if (SteadyClock::now() - looked >= kSlotLookInterval) {
      looked = SteadyClock::now();
      maps->checkpointer->Look();
      host_.look(number_, maps.get());
    }
    Pause(kServeInterval);
  }
  SetServing(nullptr);
  term.Release(maps->registry, maps->logs.get(), patience);
  host_.retire(number_, maps.get());
}

void Slot::SetServing(std::shared_ptr<SlotMaps> maps) {
  absl::MutexLock lock(&serving_mu_);
  serving_.swap(maps);
}

}  // namespace timecache::server
