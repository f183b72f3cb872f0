#include "server/log/kafka/kafka_journal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"
#include "server/log/kafka/appender_thread.h"
#include "server/log/kafka/journal_reader.h"
#include "server/log/kafka/partition_appender.h"

namespace timecache::server {
namespace {

constexpr std::chrono::milliseconds kStopInterval{20};

uint64_t RandomClaim() {
  std::random_device random;
  uint64_t claim = 0;
  while (claim == 0) claim = uint64_t{random()} << 32 | random();
  return claim;
}

}  // namespace

class KafkaJournal::Impl {
 public:
  Impl(KafkaJournalOptions options, std::unique_ptr<JournalReader> reader,
       std::unique_ptr<AppenderThread> io)
      : options_(std::move(options)),
        reader_(std::move(reader)),
        io_(std::move(io)) {}

  uint32_t partitions() const { return reader_->partitions(); }
  JournalReader& reader() { return *reader_; }

  absl::Status Read(Visitor visit) {
    if (is_owner_) return absl::OkStatus();
    absl::Status status = reader_->Read(claim_offsets_, visit);
    if (status.ok() && !claim_offsets_.empty()) status = BeginAppends();
    return status;
  }

  absl::Status Claim();

  // Null until the node owns.
  PartitionAppender* appender(uint32_t partition) {
    return is_owner_ ? appenders_[partition].get() : nullptr;
  }
  absl::Status NotOwner() const {
    return absl::FailedPreconditionError(
        stopped_ ? "the journal was stopped"
                 : "this node does not own the journal");
  }
  bool IsOwner() const {
    return is_owner_ && !lost_ && !stopped_ &&
           (!options_.holds_lease || options_.holds_lease());
  }
  int64_t claim_append_us() const { return claim_append_us_; }

  absl::StatusOr<std::unique_ptr<KafkaSnapshot>> OpenSnapshot();
  void Unpin() {
    for (const auto& appender : appenders_) appender->Unpin();
  }

  void Stop();

 private:
  struct Claimed {
    absl::Mutex mu;
    SteadyCondVar done;
    size_t missing ABSL_GUARDED_BY(mu) = 0;
    std::vector<SendReport> reports ABSL_GUARDED_BY(mu);
  };

  friend class KafkaJournal::Snapshot;
  // Waits for it, on another thread than io's.
  void RunOnIo(absl::FunctionRef<void()> run);
  absl::Status BeginAppends();
  void OnLost(const absl::Status& why);
  bool IsIdle() const;

  const KafkaJournalOptions options_;
  // The reader remains for what it knows.
  const std::unique_ptr<JournalReader> reader_;
  const std::unique_ptr<AppenderThread> io_;
  // Of the last Claim, by partition.
  std::vector<uint64_t> claims_;
  std::vector<int64_t> claim_offsets_;
  // Written before is_owner_.
  std::vector<std::unique_ptr<PartitionAppender>> appenders_;
  std::atomic<bool> is_owner_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> claim_append_us_{0};
};

absl::Status KafkaJournal::Impl::Claim() {
  if (is_owner_ || stopped_) return NotOwner();
  const auto claimed = std::make_shared<Claimed>();
  {
    absl::MutexLock lock(&claimed->mu);
    claimed->missing = partitions();
    claimed->reports.resize(partitions());
  }
  // Those of an attempt that failed may be there: they are another's now.
  claims_.clear();
  for (uint32_t p = 0; p < partitions(); ++p) {
    claims_.push_back(RandomClaim());
    io_->Send(p, EncodeClaim({claims_[p], options_.incarnation, options_.node}),
              [claimed, p](const SendReport& report, const std::string&) {
                absl::MutexLock lock(&claimed->mu);
                claimed->reports[p] = report;
                if (--claimed->missing == 0) claimed->done.Signal();
              });
  }
  absl::MutexLock lock(&claimed->mu);
  while (claimed->missing > 0) {
    claimed->done.WaitFor(&claimed->mu, kStopInterval);
    if (stopped_) io_->GiveUp();
  }
  std::vector<int64_t> offsets;
  int64_t append_us = 0;
  for (uint32_t p = 0; p < partitions(); ++p) {
    const SendReport& report = claimed->reports[p];
    if (!report.status.ok()) {
      return absl::UnavailableError(
          absl::StrCat("partition ", reader_->first_partition() + p,
                       " is not claimed: ", report.status.message()));
    }
    offsets.push_back(report.offset);
    append_us = std::max(append_us, report.append_us);
  }
  claim_offsets_ = std::move(offsets);
  claim_append_us_ = append_us;
  return absl::OkStatus();
}

absl::Status KafkaJournal::Impl::BeginAppends() {
  for (uint32_t p = 0; p < partitions(); ++p) {
    LogFilter filter = reader_->TakeFilter(p);
    if (filter.claim() != claims_[p]) {
      return absl::DataLossError(absl::StrCat(
          "partition ", reader_->first_partition() + p,
          " does not have this node's claim at offset ", claim_offsets_[p],
          ", where a broker has acknowledged it"));
    }
    appenders_.push_back(std::make_unique<PartitionAppender>(
        p, std::move(filter), static_cast<uint64_t>(claim_offsets_[p]),
        io_.get(), [this](const absl::Status& why) { OnLost(why); },
        options_.may_delete, reader_->first_partition() + p));
  }
  is_owner_ = true;
  return absl::OkStatus();
}

// On io's thread, as all that follows it.
void KafkaJournal::Impl::OnLost(const absl::Status& why) {
  if (lost_.exchange(true)) return;
  for (const auto& appender : appenders_) {
    appender->End(absl::FailedPreconditionError(why.message()));
  }
  if (options_.on_lost) options_.on_lost(why);
}

bool KafkaJournal::Impl::IsIdle() const {
  return std::all_of(appenders_.begin(), appenders_.end(),
                     [](const auto& appender) { return appender->idle(); });
}

void KafkaJournal::Impl::RunOnIo(absl::FunctionRef<void()> run) {
  absl::Mutex mu;
  SteadyCondVar done;
  bool ended = false;
  io_->After(absl::ZeroDuration(), [&] {
    run();
    absl::MutexLock lock(&mu);
    ended = true;
    done.Signal();
  });
  absl::MutexLock lock(&mu);
  while (!ended) done.Wait(&mu);
}

void KafkaJournal::Impl::Stop() {
  stopped_ = true;
  reader_->Stop();
  if (!is_owner_) return io_->GiveUp();
  const auto end = [this] {
    for (const auto& appender : appenders_) appender->End(NotOwner());
  };
  if (io_->IsCurrent()) {
    end();
    return io_->GiveUp();
  }
  RunOnIo(end);
  // What is sent meanwhile is given up, too.
  while (!IsIdle()) {
    io_->GiveUp();
    std::this_thread::sleep_for(kStopInterval);
  }
}

// --- A snapshot.

class KafkaJournal::Snapshot final : public KafkaSnapshot {
 public:
  Snapshot(Impl* impl, std::vector<uint64_t> first, std::vector<uint64_t> end)
      : impl_(*impl), first_(std::move(first)), end_(std::move(end)) {}
  ~Snapshot() override { impl_.Unpin(); }

  absl::Status Open(const KafkaJournalOptions& options,
                    const std::vector<int64_t>& begins) {
    auto reader = JournalReader::Open(options.kafka, options.topic, begins,
                                      options.partition);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return absl::OkStatus();
  }

  const std::vector<uint64_t>& first() const override { return first_; }
  bool done() const override {
    for (uint32_t p = 0; p < end_.size(); ++p) {
      if (reader_->next(p) < end_[p]) return false;
    }
    return true;
  }

  absl::Status Read(absl::Duration timeout, Visitor visit) override {
    if (impl_.lost_ || impl_.stopped_) {
      return absl::CancelledError(
          "this node does not own the journal any more");
    }
    return reader_->ReadSome(timeout, [&](uint32_t partition, uint64_t position,
                                          absl::string_view record) {
      const bool wanted =
          position >= first_[partition] && position < end_[partition];
      return wanted ? visit(partition, position, record) : absl::OkStatus();
    });
  }

 private:
  Impl& impl_;
  const std::vector<uint64_t> first_;
  const std::vector<uint64_t> end_;
  std::unique_ptr<JournalReader> reader_;
};

absl::StatusOr<std::unique_ptr<KafkaSnapshot>>
KafkaJournal::Impl::OpenSnapshot() {
  if (!is_owner_) return NotOwner();
  std::vector<uint64_t> first;
  std::vector<uint64_t> end;
  std::vector<int64_t> begins;
  // On which appends are done: no other is, meanwhile.
  RunOnIo([&] {
    for (const auto& appender : appenders_) {
      const PartitionAppender::Extent extent = appender->Pin();
      first.push_back(extent.first);
      end.push_back(extent.end);
      begins.push_back(static_cast<int64_t>(extent.offset));
    }
  });
  auto snapshot =
      std::make_unique<Snapshot>(this, std::move(first), std::move(end));
  if (!IsOwner()) return NotOwner();
  if (absl::Status status = snapshot->Open(options_, begins); !status.ok()) {
    return status;
  }
  return snapshot;
}

// --- The journal.

KafkaJournal::KafkaJournal(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}

KafkaJournal::~KafkaJournal() { impl_->Stop(); }

absl::StatusOr<std::unique_ptr<KafkaJournal>> KafkaJournal::Open(
    KafkaJournalOptions options) {
  auto reader = JournalReader::Open(options.kafka, options.topic,
                                    /*begins=*/{}, options.partition);
  if (!reader.ok()) return reader.status();
  auto io =
      AppenderThread::Open(options.kafka, options.topic, options.partition);
  if (!io.ok()) return io.status();
  return std::unique_ptr<KafkaJournal>(new KafkaJournal(std::make_unique<Impl>(
      std::move(options), *std::move(reader), *std::move(io))));
}

uint32_t KafkaJournal::partitions() const { return impl_->partitions(); }

void KafkaJournal::Append(uint32_t partition, std::vector<std::string> records,
                          Durability, AppendDone done) {
  if (partition >= partitions()) {
    done(absl::InvalidArgumentError("no such partition"), std::move(records));
  } else if (PartitionAppender* const appender = impl_->appender(partition)) {
    appender->Append(std::move(records), std::move(done));
  } else {
    done(impl_->NotOwner(), std::move(records));
  }
}

absl::Status KafkaJournal::Read(absl::Span<const ReadFrom>,
                                Visitor visit) const {
  return impl_->Read(visit);
}

absl::Status KafkaJournal::TrimBefore(uint32_t partition, uint64_t position) {
  PartitionAppender* const appender = impl_->appender(partition);
  return appender == nullptr ? impl_->NotOwner()
                             : appender->TrimBefore(position);
}

uint64_t KafkaJournal::First(uint32_t partition) const {
  const PartitionAppender* const appender = impl_->appender(partition);
  return appender == nullptr ? impl_->reader().first(partition)
                             : appender->First();
}

uint64_t KafkaJournal::End(uint32_t partition) const {
  const PartitionAppender* const appender = impl_->appender(partition);
  return appender == nullptr ? impl_->reader().next(partition)
                             : appender->End();
}

bool KafkaJournal::IsOwner() const { return impl_->IsOwner(); }

JournalStatistics KafkaJournal::statistics() const {
  JournalStatistics statistics;
  if (impl_->appender(0) == nullptr) {
    statistics.disk_bytes = impl_->reader().bytes();
    statistics.needed_bytes = statistics.disk_bytes;
    return statistics;
  }
  for (uint32_t p = 0; p < partitions(); ++p) {
    impl_->appender(p)->AddTo(&statistics);
  }
  return statistics;
}

uint64_t KafkaJournal::id() const { return impl_->reader().id(); }

void KafkaJournal::AwaitMore(absl::Duration timeout) {
  impl_->reader().AwaitMore(timeout);
}

void KafkaJournal::Wake() { impl_->reader().Wake(); }

KafkaJournalLag KafkaJournal::lag(absl::Time now) const {
  const JournalReader& reader = impl_->reader();
  // What an owner appends is none.
  if (impl_->appender(0) != nullptr) return {.read = reader.read()};
  return {reader.lag(), reader.LagAge(now), reader.read()};
}

absl::Status KafkaJournal::Claim() { return impl_->Claim(); }

int64_t KafkaJournal::last_append_us() const {
  return impl_->reader().last_append_us();
}

int64_t KafkaJournal::claim_append_us() const {
  return impl_->claim_append_us();
}

absl::StatusOr<std::unique_ptr<KafkaSnapshot>> KafkaJournal::OpenSnapshot() {
  return impl_->OpenSnapshot();
}

void KafkaJournal::Stop() { impl_->Stop(); }

}  // namespace timecache::server
