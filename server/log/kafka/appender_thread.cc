#include "server/log/kafka/appender_thread.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Without a message for so long a read asks where the partition ends. A new leader
// may take a moment to know, so the second answer counts.
constexpr std::chrono::seconds kEndCheckInterval{3};
constexpr int kEndChecks = 2;
constexpr absl::Duration kBoundsTimeout = absl::Milliseconds(500);
constexpr int kNoticeLevel = 5;
// A broker answers what came on a connection in order, each request once the other
// replicas have fetched it: the partitions that it leads wait less for each other
// on several. With 16 busy ones on three brokers: half as many more appends a second.
constexpr uint32_t kProducers = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<AppenderThread>> AppenderThread::Open(
    const KafkaOptions& options, const std::string& topic,
    std::optional<uint32_t> only) {
  std::unique_ptr<AppenderThread> io(new AppenderThread(options, topic));
  const auto wake = [io = io.get()] { io->Wake(); };
  // First: a producer's question makes a topic that is missing.
  auto consumer = KafkaConsumer::Open(options, topic, wake, only);
  if (!consumer.ok()) return consumer.status();
  io->consumer_ = *std::move(consumer);
  for (uint32_t i = 0; i < std::min(kProducers, io->consumer_->partitions());
       ++i) {
    auto producer = KafkaProducer::Open(options, topic, wake);
    if (!producer.ok()) return producer.status();
    io->producers_.push_back(*std::move(producer));
  }
  io->thread_ = std::thread([io = io.get()] { io->Run(); });
  return io;
}

AppenderThread::~AppenderThread() {
  if (!thread_.joinable()) return;
  GiveUp();
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
  }
  Wake();
  thread_.join();
}

void AppenderThread::Send(uint32_t partition, std::string value,
                          KafkaProducer::Done done) {
  producer(partition).Send(consumer_->first_partition() + partition,
                           std::move(value), std::move(done));
}

void AppenderThread::DeleteBefore(uint32_t partition, uint64_t offset) {
  consumer_->DeleteBefore(partition, static_cast<int64_t>(offset));
}

void AppenderThread::ReadBack(uint32_t partition, uint64_t from, uint64_t to,
                              Visit visit, ReadDone done) {
  reads_[partition] = {from, to, std::move(visit), std::move(done),
                       SteadyClock::now() + kEndCheckInterval};
  const absl::Status status =
      consumer_->Start(partition, static_cast<int64_t>(from));
  if (!status.ok()) {
    After(absl::ZeroDuration(),
          [this, partition, status] { EndRead(partition, status); });
  }
}

void AppenderThread::After(absl::Duration delay,
                           absl::AnyInvocable<void()> run) {
  absl::MutexLock lock(&mu_);
  timers_.emplace(SteadyClock::now() + absl::ToChronoMicroseconds(delay),
                  std::move(run));
  woken_ = true;
  wake_.Signal();
}

void AppenderThread::Log(const std::string& text) {
  if (log_) log_(kNoticeLevel, absl::StrCat(topic_, ": ", text));
}

void AppenderThread::GiveUp() {
  {
    absl::MutexLock lock(&mu_);
    given_up_ = true;
  }
  for (const auto& producer : producers_) producer->GiveUp();
  Wake();
}

void AppenderThread::Wake() {
  absl::MutexLock lock(&mu_);
  woken_ = true;
  wake_.Signal();
}

AppenderThread::TimePoint AppenderThread::NextTime() const {
  TimePoint next = SteadyClock::now() + kEndCheckInterval;
  if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
  return next;
}

bool AppenderThread::Await(std::vector<absl::AnyInvocable<void()>>* due) {
  absl::MutexLock lock(&mu_);
  while (!woken_ &&
         (timers_.empty() || timers_.begin()->first > SteadyClock::now())) {
    wake_.WaitUntil(&mu_, NextTime());
    if (!reads_.empty()) break;
  }
  woken_ = false;
  const TimePoint now = given_up_ ? TimePoint::max() : SteadyClock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    due->push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
  }
  return !(ending_ && due->empty());
}

void AppenderThread::Run() {
  std::vector<absl::AnyInvocable<void()>> due;
  while (Await(&due)) {
    for (auto& run : due) run();
    due.clear();
    for (const auto& producer : producers_) {
      producer->Poll(absl::ZeroDuration());
    }
    while (consumer_->Poll(absl::ZeroDuration(),
                           [this](const KafkaMessage& message) {
                             OnMessage(message);
                           }) > 0) {
    }
    if (!reads_.empty()) CheckReads();
  }
}

void AppenderThread::OnMessage(const KafkaMessage& message) {
  const auto found = reads_.find(message.partition);
  if (found == reads_.end() || message.is_end) return;
  Read& read = found->second;
  if (!message.status.ok()) {
    return OnError(message, read);
  }
  const auto offset = static_cast<uint64_t>(message.offset);
  if (offset < read.from) return;
  if (offset <= read.to) read.visit(offset, message.value);
  read.check_at = SteadyClock::now() + kEndCheckInterval;
  read.checks = 0;
  if (offset >= read.to) EndRead(message.partition, absl::OkStatus());
}

void AppenderThread::OnError(const KafkaMessage& message, const Read& read) {
  if (absl::IsNotFound(message.status)) {
    return EndRead(message.partition, message.status);
  }
  if (!absl::IsOutOfRange(message.status)) return;
  const auto bounds = consumer_->BoundsOf(message.partition, kBoundsTimeout);
  if (bounds.ok() && static_cast<uint64_t>(bounds->first) > read.from) {
    return EndRead(message.partition,
                   absl::FailedPreconditionError(
                       absl::StrCat("it begins at offset ", bounds->first)));
  }
  EndRead(message.partition, message.status);
}

void AppenderThread::CheckReads() {
  bool given_up;
  {
    absl::MutexLock lock(&mu_);
    given_up = given_up_;
  }
  const TimePoint now = SteadyClock::now();
  std::vector<std::pair<uint32_t, absl::Status>> ended;
  for (auto& [partition, read] : reads_) {
    if (given_up) {
      ended.emplace_back(partition, absl::CancelledError("stopped"));
    } else if (read.check_at <= now) {
      read.check_at = now + kEndCheckInterval;
      const auto bounds = consumer_->BoundsOf(partition, kBoundsTimeout);
      if (bounds.ok() && static_cast<uint64_t>(bounds->end) <= read.to &&
          ++read.checks == kEndChecks) {
        ended.emplace_back(partition, absl::OutOfRangeError(absl::StrCat(
                                          "it ends at offset ", bounds->end)));
      }
    }
  }
  for (const auto& [partition, status] : ended) EndRead(partition, status);
}

void AppenderThread::EndRead(uint32_t partition, const absl::Status& status) {
  const auto found = reads_.find(partition);
  if (found == reads_.end()) return;
  ReadDone done = std::move(found->second.done);
  reads_.erase(found);
  consumer_->Stop(partition);
  done(status);
}

}  // namespace timecache::server
