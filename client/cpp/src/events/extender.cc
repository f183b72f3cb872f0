#include "client/cpp/src/events/extender.h"

#include <algorithm>
#include <utility>

namespace timecache {
namespace {

// An event has to be late by two of these before it times out.
constexpr int kIntervalsOfAckTimeout = 3;
constexpr absl::Duration kMinInterval = absl::Milliseconds(2);
// While the group's options cannot be read.
constexpr absl::Duration kMaxUnknownInterval = absl::Seconds(1);
// Longest duration of one attempt to read them, and how often they are read.
constexpr absl::Duration kReadTimeout = absl::Seconds(1);
constexpr absl::Duration kMinReadInterval = absl::Seconds(1);

}  // namespace

Extender::Extender(const Client& client, std::string group, Extend extend)
    : client_(client),
      group_(std::move(group)),
      extend_(std::move(extend)),
      interval_(kMaxUnknownInterval),
      thread_([this] { Run(); }) {}

Extender::~Extender() {
  Stop();
  thread_.join();
}

void Extender::Wake() {
  absl::MutexLock lock(&mu_);
  woken_ = true;
  changed_.SignalAll();
}

void Extender::Stop() {
  stop_.request_stop();
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.SignalAll();
}

void Extender::Run() {
  while (AwaitWake()) {
    absl::Duration interval;
    do {
      interval = Interval();
      if (!Sleep(interval)) return;
      // Quick handlers are done before they would be extended.
    } while (extend_(SteadyAfter(-interval / 2)));
  }
}

bool Extender::AwaitWake() {
  absl::MutexLock lock(&mu_);
  while (!woken_ && !stopped_) changed_.Wait(&mu_);
  woken_ = false;
  return !stopped_;
}

absl::Duration Extender::Interval() {
  if (read_at_ != SteadyTime::min() &&
      SteadyNow() <
          SteadyAfter(std::max(interval_, kMinReadInterval), read_at_)) {
    return interval_;
  }
  const absl::StatusOr<Group> group = client_.GetGroup(
      group_, {}, {.timeout = kReadTimeout, .cancellation = stop_.get_token()});
  if (!group.ok()) return std::min(interval_, kMaxUnknownInterval);
  read_at_ = SteadyNow();
  interval_ =
      std::max(group->options.ack_timeout.value_or(absl::ZeroDuration()) /
                   kIntervalsOfAckTimeout,
               kMinInterval);
  return interval_;
}

bool Extender::Sleep(absl::Duration duration) {
  const SteadyTime until = SteadyAfter(duration);
  absl::MutexLock lock(&mu_);
  while (!stopped_ && SteadyNow() < until) changed_.WaitUntil(&mu_, until);
  return !stopped_;
}

}  // namespace timecache
