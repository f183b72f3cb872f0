#include "tests/conformance/streams.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/conformance/arguments.h"

namespace timecache::conformance {

Watch::Watch(const Client& client, WatchOptions options)
    : namespaces_(options.namespaces),
      is_member_(!options.group.empty()),
      is_expiring_(options.lead_time.has_value()),
      is_of_changes_(options.changes),
      watcher_(client, std::move(options)) {}

template <typename Enough>
absl::Status Watch::Read(const Enough& is_enough) {
  while (!is_enough()) {
    absl::StatusOr<WatchBatch> batch = watcher_.Next(kPatience);
    if (!batch.ok()) return batch.status();
    watermarks_[batch->ns] = batch->watermark;
    delivered_[batch->ns] = batch->delivered_watermark;
    tokens_[batch->ns] = batch->resume_token;
    lost_ += batch->lost;
    for (ExpiredEvent& event : batch->events) {
      const bool is_new =
          told_.emplace(event.ns, event.key, event.version, event.deadline)
              .second;
      if (is_new || !is_expiring_) events_.push_back(std::move(event));
    }
    changes_.insert(changes_.end(), batch->changes.begin(),
                    batch->changes.end());
  }
  return absl::OkStatus();
}

absl::Status Watch::ReadStart() {
  return Read([this] { return watermarks_.size() == namespaces_.size(); });
}

absl::Status Watch::ReadTo(absl::Time now) {
  return Read([&] {
    return std::all_of(
        watermarks_.begin(), watermarks_.end(),
        [&](const auto& watermark) { return watermark.second >= now; });
  });
}

absl::Status Watch::ReadEvents(size_t count) {
  return Read([&] { return events_.size() >= count; });
}

absl::Status Watch::ReadDelivered(size_t count, absl::Time until) {
  return Read([&] {
    return events_.size() >= count &&
           std::all_of(delivered_.begin(), delivered_.end(),
                       [&](const auto& of) { return of.second >= until; });
  });
}

Json Watch::Take() {
  const auto by_namespace = [this](const auto& a, const auto& b) {
    return Place(a.ns) < Place(b.ns);
  };
  std::stable_sort(events_.begin(), events_.end(), by_namespace);
  std::stable_sort(changes_.begin(), changes_.end(), by_namespace);
  Json tokens = Json::object();
  for (const auto& [ns, token] : tokens_) tokens[ns] = ToJson(token);
  Json taken = {{"events", is_of_changes_ ? ToJson(changes_) : ToJson(events_)},
                {"lost", lost_},
                {"resume_token", tokens[namespaces_[0]]},
                {"resume_tokens", tokens}};
  events_.clear();
  changes_.clear();
  lost_ = 0;
  return taken;
}

size_t Watch::Place(const std::string& ns) const {
  return std::find(namespaces_.begin(), namespaces_.end(), ns) -
         namespaces_.begin();
}

Worker::Worker(const Client& client, GroupWorkerOptions options, Json script,
               const Matcher& matcher)
    : matcher_(matcher),
      script_(std::move(script)),
      worker_(client, std::move(options),
              [this](const ExpiredEvent& event) { return Handle(event); }) {}

Json Worker::Take(size_t count) {
  const auto has_come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return handled_.size() >= count;
  };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&has_come), kPatience);
  return ToJson(std::exchange(handled_, {}));
}

Settle Worker::Handle(const ExpiredEvent& event) {
  Json action = {{"ack", Json::object()}};
  {
    absl::MutexLock lock(&mu_);
    handled_.push_back(event);
    if (script_.contains(event.key)) {
      Json& actions = script_[event.key];
      action = actions[0];
      if (actions.size() > 1) actions.erase(0);
    }
  }
  const auto [kind, values] = *action.items().begin();
  if (kind == "throw") throw std::runtime_error(values);
  return TakeSettle(kind, Args(matcher_, values));
}

}  // namespace timecache::conformance
