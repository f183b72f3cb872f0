#include "server/log/kafka/topic_snapshot.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log/kafka/journal_reader.h"
#include "server/log/kafka/kafka_producer.h"
#include "server/log/kafka/log_message.h"

namespace timecache::server {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMarkPatience{20};
constexpr absl::Duration kReportInterval = absl::Milliseconds(100);
// From marks that brokers did not take to the next ones.
constexpr std::chrono::milliseconds kMarkInterval{100};

uint64_t RandomId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// The offset of the mark in each partition. All are sent at once, so that little is
// appended between the first and the last.
absl::StatusOr<std::vector<int64_t>> AppendMarks(const KafkaOptions& options,
                                                 const std::string& topic,
                                                 const std::string& mark,
                                                 const JournalReader& reader) {
  auto producer = KafkaProducer::Open(options, topic);
  if (!producer.ok()) return producer.status();
  const auto deadline = SteadyClock::now() + kMarkPatience;
  std::vector<int64_t> offsets(reader.partitions(), -1);
  for (;;) {
    size_t waiting = 0;
    size_t failed = 0;
    absl::Status error;
    for (uint32_t p = 0; p < offsets.size(); ++p) {
      if (offsets[p] >= 0) continue;
      ++waiting;
      (*producer)->Send(
          p, mark, [&, p](const SendReport& report, const std::string&) {
            --waiting;
            error.Update(report.status);
            // Brokers may answer with an offset that cannot be.
            if (report.status.ok() && report.offset >= reader.end(p)) {
              offsets[p] = report.offset;
            } else {
              ++failed;
            }
          });
    }
    // Each is reported some time.
    while (waiting > 0) (*producer)->Poll(kReportInterval);
    if (failed == 0) return offsets;
    if (SteadyClock::now() > deadline) {
      return absl::UnavailableError(
          absl::StrCat(failed, " partitions of ", topic,
                       " take no message: ", error.message()));
    }
    std::this_thread::sleep_for(kMarkInterval);
  }
}

class TopicSnapshot final : public KafkaSnapshot {
 public:
  TopicSnapshot(std::unique_ptr<JournalReader> reader,
                std::vector<int64_t> last, std::string mark)
      : reader_(std::move(reader)),
        last_(std::move(last)),
        finished_(last_.size()),
        left_(last_.size()) {
    for (uint32_t p = 0; p < last_.size(); ++p) {
      first_.push_back(reader_->first(p));
    }
    reader_->SetEnds(last_, std::move(mark));
  }

  const std::vector<uint64_t>& first() const override { return first_; }
  bool done() const override { return left_ == 0; }

  absl::Status Read(absl::Duration timeout, Journal::Visitor visit) override {
    absl::Status status = reader_->ReadSome(timeout, visit);
    for (uint32_t p = 0; p < last_.size() && status.ok(); ++p) {
      if (finished_[p] || reader_->position(p) <= last_[p]) continue;
      finished_[p] = true;
      --left_;
      status = reader_->Finish(p);
    }
    return status;
  }

 private:
  const std::unique_ptr<JournalReader> reader_;
  const std::vector<int64_t> last_;
  std::vector<uint64_t> first_;
  std::vector<bool> finished_;
  size_t left_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaSnapshot>> OpenTopicSnapshot(
    const KafkaOptions& options, const std::string& topic) {
  // First: what it finds deleted was given up by messages before the marks.
  auto reader = JournalReader::Open(options, topic);
  if (!reader.ok()) return reader.status();
  std::string mark = EncodeMark(RandomId());
  const auto last = AppendMarks(options, topic, mark, **reader);
  if (!last.ok()) return last.status();
  return std::make_unique<TopicSnapshot>(*std::move(reader), *last,
                                         std::move(mark));
}

}  // namespace timecache::server
