#include "timecache/group_worker.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/events/group_worker_state.h"
#include "client/cpp/src/rpc/client_core.h"

namespace timecache {
namespace {

constexpr absl::Duration kMaxSettleTime = absl::Seconds(5);
// Most events that the server lets a member hold.
constexpr uint32_t kMaxInFlight = 65'536;

GroupWorkerOptions Checked(GroupWorkerOptions options, const Client& client) {
  if (options.ns.empty()) options.ns = client.options().default_namespace;
  options.threads = std::max(options.threads, 1);
  if (!options.max_in_flight) {
    options.max_in_flight =
        std::min(2 * static_cast<uint32_t>(options.threads), kMaxInFlight);
  }
  options.settle_batch_max =
      std::clamp<size_t>(options.settle_batch_max, 1, kMaxSettlements);
  return options;
}

// A stop waits for the call in progress.
Client MakeSettleClient(const Client& client,
                        const GroupWorkerOptions& options) {
  return Client::Core::With(
      client, {.default_namespace = options.ns,
               .timeout = std::min(client.options().timeout, kMaxSettleTime)});
}

SettlerOptions MakeSettlerOptions(const GroupWorkerOptions& options) {
  return {.group = options.group,
          .batch_max = options.settle_batch_max,
          // Of each event a kExtend and a settlement.
          .pending_max = 2 * std::max<size_t>(*options.max_in_flight, 1),
          .linger = options.settle_linger,
          .min_pause = options.min_pause,
          .max_pause = options.max_pause};
}

}  // namespace

GroupWorker::State::State(const Client& client, GroupWorkerOptions options,
                          Handler handler)
    : options_(Checked(std::move(options), client)),
      handler_(std::move(handler)),
      client_(MakeSettleClient(client, options_)),
      handlers_left_(options_.threads),
      threads_left_(options_.threads + 1),
      watcher_(client, MakeWatchOptions()),
      settler_(client_, MakeSettlerOptions(options_),
               {.on_result =
                    [this](const Owed& owed, const absl::Status& status) {
                      return Settled(owed, status);
                    },
                .on_dropped = [this](const Owed& owed) { Dropped(owed); },
                .on_error = [this](const absl::Status& why) { Report(why); }}) {
  threads_.emplace_back([this] { Read(); });
  if (options_.extend_max > absl::ZeroDuration()) {
    threads_.emplace_back([this] { Extend(); });
  }
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { Handle(); });
  }
}

GroupWorker::State::~State() {
  RequestStop();
  for (std::thread& thread : threads_) thread.join();
}

WatchOptions GroupWorker::State::MakeWatchOptions() {
  return {.namespaces = {options_.ns},
          .start = options_.start,
          .keys_only = options_.keys_only,
          .group = options_.group,
          .max_in_flight = options_.max_in_flight,
          .max_message_bytes = options_.max_message_bytes,
          .wait_for_server = options_.wait_for_server,
          .min_pause = options_.min_pause,
          .max_pause = options_.max_pause,
          .silence_max = options_.silence_max,
          .on_break = [this](const absl::Status& why) { LoseUnbegun(why); }};
}

void GroupWorker::State::RequestStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

absl::Status GroupWorker::State::Wait() {
  const auto has_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return threads_left_ == 0;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&has_ended));
  return end_;
}

GroupWorkerCounters GroupWorker::State::counters() const {
  absl::MutexLock lock(&mu_);
  return counters_;
}

void GroupWorker::State::Read() {
  // Without a group it would be an ordinary watch.
  absl::Status end = options_.group.empty()
                         ? absl::InvalidArgumentError("group: must be given")
                         : absl::OkStatus();
  while (end.ok()) {
    absl::StatusOr<WatchBatch> batch = watcher_.Next();
    if (batch.ok()) {
      Take(*std::move(batch));
    } else {
      end = batch.status();
    }
  }
  stop_extending_.request_stop();
  absl::MutexLock lock(&mu_);
  has_left_ = true;
  left_.SignalAll();
  if (!stopping_) end_ = end;
  stopping_ = true;
  --threads_left_;
}

// Waits until there is room for another batch.
void GroupWorker::State::Take(WatchBatch batch) {
  if (batch.lost > 0) {
    {
      absl::MutexLock lock(&mu_);
      counters_.lost += batch.lost;
    }
    absl::MutexLock lock(&report_mu_);
    if (options_.on_loss) options_.on_loss(batch.lost);
  }
  const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || held_.size() < *options_.max_in_flight;
  };
  const SteadyTime now = SteadyNow();
  absl::MutexLock lock(&mu_);
  counters_.omitted_values += batch.omitted_values;
  for (ExpiredEvent& event : batch.events) {
    Held& held = held_[NameOf(event)];
    if (held != nullptr && !held->nacked) {
      held->event.attempt = event.attempt;
      held->event.returns = event.returns;
      held->event.delivery_token = std::move(event.delivery_token);
      held->given_up = false;
      continue;
    }
    if (stopping_) {
      held_.erase(NameOf(event));
      continue;
    }
    held = std::make_shared<HeldEvent>(
        HeldEvent{.event = std::move(event), .arrived_at = now});
    queue_.push_back(held);
  }
  mu_.Await(absl::Condition(&has_room));
}

// When the stream ended the server delivered them again.
void GroupWorker::State::LoseUnbegun(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    for (const Held& unbegun : queue_) Forget(*unbegun);
    queue_.clear();
    // Events of a new stream are for other members.
    if (stopping_) watcher_.Cancel();
  }
  Report(why.ok() ? absl::UnavailableError("the server is stopping") : why);
}

void GroupWorker::State::Handle() {
  ExpiredEvent event;
  while (const Held held = Begin(event)) End(held, Run(event));
  bool is_last;
  {
    absl::MutexLock lock(&mu_);
    is_last = --handlers_left_ == 0;
  }
  if (is_last) {
    const absl::Status status = settler_.Finish(options_.stop_timeout);
    watcher_.Cancel();
    absl::MutexLock lock(&mu_);
    if (end_.ok()) end_ = status;
  }
  absl::MutexLock lock(&mu_);
  --threads_left_;
}

// Waits for an event. Null: no more handlers are to be started.
GroupWorker::State::Held GroupWorker::State::Begin(ExpiredEvent& event) {
  const auto is_woken = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || !queue_.empty();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&is_woken));
  if (stopping_) return nullptr;
  Held held = std::move(queue_.front());
  queue_.pop_front();
  std::string value = std::exchange(held->event.value, {});
  std::optional<GatheredParts> parts = std::exchange(held->event.parts, {});
  event = held->event;
  event.value = std::move(value);
  event.parts = std::move(parts);
  ++running_;
  return held;
}

Settle GroupWorker::State::Run(const ExpiredEvent& event) {
  std::string what;
  bool has_thrown = true;
  try {
    const Settle how = handler_(event);
    if (how.action != SettleAction::kExtend) return how;
    has_thrown = false;
    what = "returned kExtend, which settles nothing";
  } catch (const std::exception& exception) {
    what = absl::StrCat("threw: ", exception.what());
  } catch (...) {
    what = "threw: something that is no std::exception";
  }
  Report(absl::UnknownError(
      absl::StrCat("the handler of ", EventText(event), " ", what)));
  absl::MutexLock lock(&mu_);
  if (has_thrown) ++counters_.thrown;
  return Settle::Nack(options_.retry_delay);
}

void GroupWorker::State::End(const Held& held, const Settle& how) {
  Owed owed = {{.how = how}, held};
  {
    absl::MutexLock lock(&mu_);
    ++counters_.handled;
    owed.settlement.delivery_token = held->event.delivery_token;
    held->settling = true;
    held->nacked = how.action == SettleAction::kNack;
  }
  settler_.Add(owed);
  bool is_idle;
  {
    absl::MutexLock lock(&mu_);
    is_idle = --running_ == 0 && (stopping_ || queue_.empty());
  }
  if (is_idle) settler_.Hurry();
}

void GroupWorker::State::Report(const absl::Status& why) {
  absl::MutexLock lock(&report_mu_);
  if (options_.on_error) return options_.on_error(why);
  const std::string text =
      why.ToString(absl::StatusToStringMode::kWithNoExtraData);
  std::fprintf(stderr, "timecache: %s, group %s: %s\n", options_.ns.c_str(),
               options_.group.c_str(), text.c_str());
}

GroupWorker::GroupWorker(const Client& client, GroupWorkerOptions options,
                         Handler handler)
    : state_(std::make_unique<State>(client, std::move(options),
                                     std::move(handler))) {}

GroupWorker::~GroupWorker() = default;

void GroupWorker::RequestStop() { state_->RequestStop(); }

absl::Status GroupWorker::Stop() {
  state_->RequestStop();
  return state_->Wait();
}

absl::Status GroupWorker::Wait() { return state_->Wait(); }

GroupWorkerCounters GroupWorker::counters() const { return state_->counters(); }

}  // namespace timecache
