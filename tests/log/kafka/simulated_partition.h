// A partition in memory, and brokers that answer as a test says.

#ifndef TIMECACHED_TESTS_LOG_KAFKA_SIMULATED_PARTITION_H_
#define TIMECACHED_TESTS_LOG_KAFKA_SIMULATED_PARTITION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "server/log/kafka/partition_appender.h"

namespace timecache::server {

// What all nodes share. Offsets may be skipped.
struct SimulatedLog {
  std::map<uint64_t, std::string> messages;
  uint64_t end = 0;
  uint64_t low = 0;
  size_t message_bytes_max = SIZE_MAX;
  // Sent long ago: may be appended at any time.
  std::vector<std::string> late;

  uint64_t Append(std::string value) {
    messages[end] = std::move(value);
    return end++;
  }
};

// The next Send's.
enum class Answer {
  kStored,
  kRefused,
  // The outcome is not known to the sender, ...
  kUnknownLost,
  kUnknownStored,
  kUnknownLate,
  // Stored; the broker says 0, or -1.
  kOffsetZero,
  kOffsetMissing,
};

// One node's connections. RunOne and Run do what was asked for, in order.
class SimulatedIo final : public AppenderIo {
 public:
  explicit SimulatedIo(SimulatedLog* log) : log_(*log) {}

  void Send(uint32_t, std::string value, KafkaProducer::Done done) override {
    ++sends;
    tasks_.emplace_back(
        [this, value = std::move(value), done = std::move(done)]() mutable {
          done(Report(value), value);
        });
  }
  void DeleteBefore(uint32_t, uint64_t offset) override {
    log_.low = std::max(log_.low, offset);
  }
  void ReadBack(uint32_t, uint64_t from, uint64_t to, Visit visit,
                ReadDone done) override {
    ++reads;
    tasks_.emplace_back([this, from, to, visit = std::move(visit),
                         done = std::move(done)]() mutable {
      if (read_errors > 0) {
        --read_errors;
        return done(absl::UnavailableError("no broker"));
      }
      if (from < log_.low) {
        return done(absl::FailedPreconditionError("trimmed"));
      }
      if (to >= log_.end) {
        return done(absl::OutOfRangeError("no such offset"));
      }
      for (auto it = log_.messages.lower_bound(from);
           it != log_.messages.end() && it->first <= to; ++it) {
        visit(it->first, it->second);
      }
      done(absl::OkStatus());
    });
  }
  void After(absl::Duration, absl::AnyInvocable<void()> run) override {
    tasks_.push_back(std::move(run));
  }
  void Log(const std::string& text) override { texts.push_back(text); }

  // False: nothing is to do.
  bool RunOne() {
    if (tasks_.empty()) return false;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
    return true;
  }
  void Run() {
    while (RunOne()) {
    }
  }

  // Without one: stored.
  std::function<Answer()> answer;
  std::deque<Answer> answers;
  int read_errors = 0;
  size_t sends = 0;
  size_t reads = 0;
  std::vector<std::string> texts;

 private:
  Answer Next() {
    if (!answers.empty()) {
      const Answer next = answers.front();
      answers.pop_front();
      return next;
    }
    return answer ? answer() : Answer::kStored;
  }

  SendReport Report(const std::string& value) {
    SendReport report;
    if (value.size() > log_.message_bytes_max) {
      report.status = absl::ResourceExhaustedError("too large");
      return report;
    }
    const Answer next = Next();
    switch (next) {
      case Answer::kStored:
        report.offset = static_cast<int64_t>(log_.Append(value));
        return report;
      case Answer::kOffsetZero:
      case Answer::kOffsetMissing:
        log_.Append(value);
        report.offset = next == Answer::kOffsetZero ? 0 : -1;
        return report;
      case Answer::kRefused:
        report.status = absl::UnavailableError("not the leader");
        return report;
      case Answer::kUnknownStored:
        log_.Append(value);
        break;
      case Answer::kUnknownLate:
        log_.late.push_back(value);
        break;
      case Answer::kUnknownLost:
        break;
    }
    report.status = absl::UnavailableError("timed out");
    report.stored = SendReport::Stored::kUnknown;
    return report;
  }

  SimulatedLog& log_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
};

// Reads the log from its first message that is left. The records by position.
inline absl::Status ReadLog(const SimulatedLog& log, uint64_t from,
                            LogFilter* filter,
                            std::map<uint64_t, std::string>* records) {
  absl::Status status;
  auto it = log.messages.lower_bound(from);
  if (from > 0 && it != log.messages.end()) {
    status = filter->BeginAt(it->first, it->second);
  }
  for (; it != log.messages.end() && status.ok(); ++it) {
    status = filter->Add(it->first, it->second,
                         [&](uint64_t position, absl::string_view record) {
                           records->emplace(position, record);
                           return absl::OkStatus();
                         });
  }
  return status;
}

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_LOG_KAFKA_SIMULATED_PARTITION_H_
