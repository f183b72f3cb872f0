#include "timecache/group_worker.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/events/settler.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

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
  return Client(client.channel(), {.default_namespace = options.ns,
                                   .timeout = std::min(client.options().timeout,
                                                       kMaxSettleTime)});
}

SettlerOptions MakeSettlerOptions(const GroupWorkerOptions& options) {
  return {.group = options.group,
          .batch_max = options.settle_batch_max,
          .pending_max = std::max<size_t>(*options.max_in_flight, 1),
          .linger = options.settle_linger,
          .min_pause = options.min_pause,
          .max_pause = options.max_pause};
}

}  // namespace

// A thread reads the stream and fills the queue, which the handlers' threads
// empty; the settler has another. The stream stays open until the last event is
// settled: when it ends the server delivers unsettled events again.
class GroupWorker::State {
 public:
  State(const Client& client, GroupWorkerOptions options, Handler handler);
  ~State();

  void RequestStop();
  absl::Status Wait();
  GroupWorkerCounters counters() const;

 private:
  // An event that the worker holds, until the server has its settlement.
  struct Task {
    uint64_t number = 0;  // No other task has it.
    uint64_t version = 0;
    std::string key;
    uint32_t attempt = 0;  // The newest.
    // Delivered again since it was last settled.
    bool again = false;
    // Settled by a kNack: the next delivery is handled again.
    bool returned = false;

    // A new log may assign the ids of the old one to other events.
    bool Is(const ExpiredEvent& event) const {
      return version == event.version && key == event.key;
    }
  };
  struct Begun {
    uint64_t task = 0;
    ExpiredEvent event;
  };

  WatchOptions MakeWatchOptions();

  // The threads' functions.
  void Read();
  void Handle();

  void Take(WatchBatch batch);
  void LoseUnbegun(const absl::Status& why);
  bool Begin(Begun& begun);
  Settle Run(const ExpiredEvent& event);
  void End(const Begun& begun, const Settle& how);
  bool IsDue(const Owed& owed);
  std::optional<Owed> Settled(const Owed& owed, const absl::Status& status);
  std::optional<Owed> Refused(const Owed& owed, const absl::Status& status);
  void Dropped(const Owed& owed);
  void Report(const absl::Status& why);
  Task* Find(uint64_t event_id, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(uint64_t event_id, uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const GroupWorkerOptions options_;
  const Handler handler_;

  mutable absl::Mutex mu_;
  // Not started.
  std::deque<Begun> queue_ ABSL_GUARDED_BY(mu_);
  // By event id. An event that is delivered again meanwhile is not handled
  // twice; if the id is reused for another event, that one takes its place, and
  // no settlement of the former is sent.
  absl::flat_hash_map<uint64_t, Task> tasks_ ABSL_GUARDED_BY(mu_);
  uint64_t last_task_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;  // Handlers.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int handlers_left_ ABSL_GUARDED_BY(mu_);  // Threads that have not ended.
  int threads_left_ ABSL_GUARDED_BY(mu_);   // Of these and the reader.
  absl::Status end_ ABSL_GUARDED_BY(mu_);
  GroupWorkerCounters counters_ ABSL_GUARDED_BY(mu_);

  absl::Mutex report_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // One callback at a time.

  Watcher watcher_;
  Settler settler_;
  std::vector<std::thread> threads_;
};

GroupWorker::State::State(const Client& client, GroupWorkerOptions options,
                          Handler handler)
    : options_(Checked(std::move(options), client)),
      handler_(std::move(handler)),
      handlers_left_(options_.threads),
      threads_left_(options_.threads + 1),
      watcher_(client, MakeWatchOptions()),
      settler_(MakeSettleClient(client, options_), MakeSettlerOptions(options_),
               {.is_due = [this](const Owed& owed) { return IsDue(owed); },
                .on_result =
                    [this](const Owed& owed, const absl::Status& status) {
                      return Settled(owed, status);
                    },
                .on_dropped = [this](const Owed& owed) { Dropped(owed); },
                .on_error = [this](const absl::Status& why) { Report(why); }}) {
  threads_.emplace_back([this] { Read(); });
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
  absl::MutexLock lock(&mu_);
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
    return stopping_ || tasks_.size() < *options_.max_in_flight;
  };
  absl::MutexLock lock(&mu_);
  counters_.omitted_values += batch.omitted_values;
  for (ExpiredEvent& event : batch.events) {
    const auto it = tasks_.find(event.event_id);
    if (it != tasks_.end() && it->second.Is(event) && !it->second.returned) {
      it->second.attempt = event.attempt;
      it->second.again = true;
      continue;
    }
    if (it != tasks_.end()) tasks_.erase(it);
    if (stopping_) continue;
    tasks_[event.event_id] = {.number = ++last_task_,
                              .version = event.version,
                              .key = event.key,
                              .attempt = event.attempt};
    queue_.push_back({last_task_, std::move(event)});
  }
  mu_.Await(absl::Condition(&has_room));
}

// When the stream ended the server delivered them again.
void GroupWorker::State::LoseUnbegun(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    for (const Begun& unbegun : queue_) {
      Forget(unbegun.event.event_id, unbegun.task);
    }
    queue_.clear();
    // Events of a new stream are for other members.
    if (stopping_) watcher_.Cancel();
  }
  Report(why.ok() ? absl::UnavailableError("the server is stopping") : why);
}

void GroupWorker::State::Handle() {
  for (Begun begun; Begin(begun);) End(begun, Run(begun.event));
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

// Waits for an event. False: no more handlers are to be started.
bool GroupWorker::State::Begin(Begun& begun) {
  const auto is_woken = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || !queue_.empty();
  };
  absl::MutexLock lock(&mu_);
  while (true) {
    mu_.Await(absl::Condition(&is_woken));
    if (stopping_) return false;
    begun = std::move(queue_.front());
    queue_.pop_front();
    const Task* const task = Find(begun.event.event_id, begun.task);
    if (task == nullptr) continue;
    begun.event.attempt = task->attempt;
    ++running_;
    return true;
  }
}

Settle GroupWorker::State::Run(const ExpiredEvent& event) {
  std::string what = "something that is no std::exception";
  try {
    return handler_(event);
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
  }
  Report(absl::UnknownError(
      absl::StrCat("the handler of event ", event.event_id, " threw: ", what)));
  absl::MutexLock lock(&mu_);
  ++counters_.thrown;
  return Settle::Nack(options_.retry_delay);
}

void GroupWorker::State::End(const Begun& begun, const Settle& how) {
  const uint64_t event_id = begun.event.event_id;
  Owed owed = {{.event_id = event_id, .how = how}, begun.task};
  {
    absl::MutexLock lock(&mu_);
    ++counters_.handled;
    if (Task* const task = Find(event_id, begun.task)) {
      owed.settlement.attempt = task->attempt;
      task->again = false;
      task->returned = how.action == SettleAction::kNack;
    }
  }
  settler_.Add(owed);
  bool is_idle;
  {
    absl::MutexLock lock(&mu_);
    is_idle = --running_ == 0 && (stopping_ || queue_.empty());
  }
  if (is_idle) settler_.Hurry();
}

bool GroupWorker::State::IsDue(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  if (Find(owed.settlement.event_id, owed.task) != nullptr) return true;
  ++counters_.stale;
  return false;
}

// The server's answer; returns what to settle in its place, if anything.
std::optional<Owed> GroupWorker::State::Settled(const Owed& owed,
                                                const absl::Status& status) {
  const SettleAction action = owed.settlement.how.action;
  const bool is_stale = HasReason(status, ErrorReason::kStaleAttempt);
  if (action != SettleAction::kNack &&
      (is_stale || absl::IsInvalidArgument(status))) {
    // Perhaps it was delivered to this worker again; by a restarted server with
    // the same attempt, because the interrupted one does not count. A new group
    // counts attempts from the start.
    absl::MutexLock lock(&mu_);
    Task* const task = Find(owed.settlement.event_id, owed.task);
    if (task != nullptr && std::exchange(task->again, false)) {
      Owed instead = owed;
      instead.settlement.attempt = task->attempt;
      return instead;
    }
  }
  if (!status.ok() && !is_stale &&
      !HasReason(status, ErrorReason::kEventNotUnsettled)) {
    return Refused(owed, status);
  }
  absl::MutexLock lock(&mu_);
  Forget(owed.settlement.event_id, owed.task);
  if (!status.ok()) {
    ++counters_.stale;
  } else if (action == SettleAction::kAck) {
    ++counters_.acked;
  } else if (action == SettleAction::kNack) {
    ++counters_.nacked;
  } else {
    ++counters_.put_back;
  }
  return std::nullopt;
}

// The server refused the settlement, or has no room for the entry that is put
// back: then it is retried later.
std::optional<Owed> GroupWorker::State::Refused(const Owed& owed,
                                                const absl::Status& status) {
  Report(status);
  const Settle retry = Settle::Nack(options_.retry_delay);
  const Settle& how = owed.settlement.how;
  const bool was_retry =
      how.action == SettleAction::kNack && how.delay == retry.delay;
  if (was_retry || how.action == SettleAction::kAck) {
    Dropped(owed);
    return std::nullopt;
  }
  absl::MutexLock lock(&mu_);
  Task* const task = Find(owed.settlement.event_id, owed.task);
  if (task == nullptr) {
    ++counters_.stale;
    return std::nullopt;
  }
  task->returned = true;
  Owed instead = owed;
  instead.settlement.how = retry;
  return instead;
}

void GroupWorker::State::Dropped(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  ++counters_.unsettled;
  Forget(owed.settlement.event_id, owed.task);
}

// Null once the id belongs to another event, or to none.
GroupWorker::State::Task* GroupWorker::State::Find(uint64_t event_id,
                                                   uint64_t number) {
  const auto it = tasks_.find(event_id);
  if (it == tasks_.end() || it->second.number != number) return nullptr;
  return &it->second;
}

// From here on the event is handled when it is delivered again.
void GroupWorker::State::Forget(uint64_t event_id, uint64_t number) {
  if (Find(event_id, number) != nullptr) tasks_.erase(event_id);
}

void GroupWorker::State::Report(const absl::Status& why) {
  absl::MutexLock lock(&report_mu_);
  if (options_.on_error) options_.on_error(why);
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
