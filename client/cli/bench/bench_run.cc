#include "client/cli/bench/bench_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/src/rpc/connection.h"
#include "grpcpp/support/channel_arguments.h"
#include "server/base/units.h"
#include "timecache/channel.h"

namespace timecache::cli {
namespace {

// Longest sleep: an interrupt, the end and the progress line wait for it.
constexpr std::chrono::milliseconds kMaxPollWait(50);
// gRPC sleeps in whole milliseconds; what is due sooner is waited for awake.
constexpr double kAwakeNs = 2e6;
// How long a clean end may take.
constexpr absl::Duration kClosePatience = absl::Seconds(1);

int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A connection of its own, with nothing in it that a message need not pass.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeBenchChannel(
    const BenchOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MINIMAL_STACK, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return MakeChannel(options.address, options.channel, arguments);
}

double IntervalNs(const BenchOptions& options) {
  if (options.rate == 0) return 0;
  return 1e9 * static_cast<double>(options.batch) / options.rate;
}

}  // namespace

BenchRun::BenchRun(const BenchOptions& options, std::FILE* timeline,
                   OnProgress on_progress)
    : options_(options),
      on_progress_(std::move(on_progress)),
      interval_ns_(IntervalNs(options)),
      keys_(options.keys, options.is_sequential,
            options.is_sequential ? 0 : absl::ToUnixNanos(absl::Now())),
      tally_(timeline),
      operations_left_(options.operations == 0 ? UINT64_MAX
                                               : options.operations) {}

BenchRun::~BenchRun() {
  Close();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

absl::Status BenchRun::Run() {
  Connect();
  if (!failure_.ok()) return failure_;
  Open();
  if (!failure_.ok()) return failure_;
  const double cpu_before = CpuSeconds();
  const int64_t now_ns = heard_ns_ = NowNs();
  end_ns_ = now_ns + absl::ToInt64Nanoseconds(options_.duration);
  next_due_ns_ = static_cast<double>(now_ns);
  tally_.Start(now_ns);
  sending_ = true;
  for (const auto& sender : senders_) Send(*sender, now_ns);
  while (!IsOver()) {
    Poll();
    if (interval_ns_ > 0) SendDue();
  }
  sending_ = false;
  while (in_flight_ > 0 && failure_.ok()) Poll();
  tally_.Finish(NowNs());
  cpu_seconds_ = CpuSeconds() - cpu_before;
  return failure_;
}

void BenchRun::Connect() {
  for (size_t i = 0; i < options_.connections; ++i) {
    auto channel = MakeBenchChannel(options_);
    if (!channel.ok()) {
      failure_ = channel.status();
      return;
    }
    channels_.push_back(*std::move(channel));
    channels_.back()->GetState(/*try_to_connect=*/true);
    // A stream has many messages in flight, a unary call is one.
    const size_t senders = options_.is_unary ? options_.depth : 1;
    for (size_t j = 0; j < senders; ++j) {
      senders_.push_back((options_.is_unary ? MakeBenchCalls : MakeBenchStream)(
          options_, channels_.back(), queue_, keys_, *this));
    }
  }
  // Those that need longer make the first call wait.
  const SteadyTime until =
      SteadyAfter(std::min(options_.timeout, kConnectPatience));
  for (const auto& channel : channels_) timecache::Connect(*channel, until);
}

void BenchRun::Open() {
  for (const auto& sender : senders_) sender->Start();
  heard_ns_ = NowNs();
  in_flight_ = 1;  // An answer is owed: that the calls have begun.
  for (const auto& sender : senders_) {
    while (failure_.ok() && !sender->CanSend()) Poll();
  }
  in_flight_ = 0;
}

void BenchRun::Close() {
  for (const auto& sender : senders_) sender->Close();
  const int64_t patience_ns = absl::ToInt64Nanoseconds(kClosePatience);
  const int64_t until_ns = NowNs() + patience_ns;
  bool cancelled = false;
  for (const auto& sender : senders_) {
    while (!sender->is_finished()) {
      Poll();
      if (cancelled || NowNs() < until_ns) continue;
      cancelled = true;
      for (const auto& each : senders_) each->Cancel();
    }
  }
}

std::chrono::system_clock::time_point BenchRun::PollUntil() const {
  const auto now = std::chrono::system_clock::now();
  const bool is_answer_awaited = interval_ns_ == 0 || all_busy_;
  if (is_answer_awaited || !sending_) return now + kMaxPollWait;
  const double wait_ns = next_due_ns_ - static_cast<double>(NowNs());
  // Long ago: look, and do not wait.
  if (wait_ns <= kAwakeNs) return {};
  const std::chrono::nanoseconds sleep(
      static_cast<int64_t>(wait_ns - kAwakeNs));
  return now +
         std::min<std::chrono::system_clock::duration>(kMaxPollWait, sleep);
}

void BenchRun::Poll() {
  void* tag;
  bool ok;
  const auto result = queue_.AsyncNext(&tag, &ok, PollUntil());
  if (result == grpc::CompletionQueue::GOT_EVENT) {
    return static_cast<BenchEvent*>(tag)->Happened(ok);
  }
  const int64_t now_ns = NowNs();
  if (sending_) tally_.Tick(now_ns);
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(options_.timeout);
  if (in_flight_ > 0 && now_ns - heard_ns_ > timeout_ns) {
    Failed(absl::DeadlineExceededError(
        absl::StrCat("no answer within ", DurationText(options_.timeout))));
  }
}

bool BenchRun::IsOver() const {
  return !sending_ || interrupted_ || !failure_.ok() ||
         !tally_.first_error().ok() || NowNs() >= end_ns_;
}

bool BenchRun::TakeTurn(int64_t now_ns, int64_t& due_ns) {
  if (!sending_ || now_ns >= end_ns_) return false;
  if (operations_left_ == 0) {
    sending_ = false;
    return false;
  }
  due_ns = now_ns;
  if (interval_ns_ > 0) {
    if (next_due_ns_ > static_cast<double>(now_ns)) return false;
    due_ns = static_cast<int64_t>(next_due_ns_);
    next_due_ns_ += interval_ns_;
  }
  operations_left_ -= std::min<uint64_t>(operations_left_, options_.batch);
  return true;
}

void BenchRun::Send(BenchSender& sender, int64_t now_ns) {
  int64_t due_ns;
  while (sender.CanSend() && TakeTurn(now_ns, due_ns)) {
    ++in_flight_;
    sender.Send(due_ns);
  }
}

// One message to each sender in turn, so that all connections are used alike.
void BenchRun::SendDue() {
  const int64_t now_ns = NowNs();
  int64_t due_ns;
  all_busy_ = false;
  for (size_t busy = 0; busy < senders_.size();) {
    BenchSender& sender = *senders_[next_sender_];
    next_sender_ = (next_sender_ + 1) % senders_.size();
    if (!sender.CanSend()) {
      ++busy;
      continue;
    }
    if (!TakeTurn(now_ns, due_ns)) return;
    busy = 0;
    ++in_flight_;
    sender.Send(due_ns);
  }
  all_busy_ = true;
}

void BenchRun::Answered(BenchSender& sender, int64_t due_ns,
                        const BenchCounts& counts) {
  const int64_t now_ns = heard_ns_ = NowNs();
  --in_flight_;
  tally_.Add(now_ns, now_ns - due_ns, counts);
  on_progress_(tally_);
  if (counts.errors > 0) return;
  if (interval_ns_ == 0) Send(sender, now_ns);
}

void BenchRun::OperationFailed(const absl::Status& error) {
  tally_.AddError(error);
}

void BenchRun::Failed(const absl::Status& why) {
  if (failure_.ok()) failure_ = why;
}

uint64_t BenchRun::messages_not_sent() const {
  const double late_ns = static_cast<double>(end_ns_) - next_due_ns_;
  if (interval_ns_ == 0 || late_ns <= 0 || interrupted_) return 0;
  return static_cast<uint64_t>(late_ns / interval_ns_);
}

}  // namespace timecache::cli
