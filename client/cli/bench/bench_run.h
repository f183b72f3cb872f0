// A benchmark from its first message to its last answer.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_BENCH_RUN_H_
#define TIMECACHED_CLIENT_CLI_BENCH_BENCH_RUN_H_

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "client/cli/bench/bench_sender.h"
#include "client/cli/bench/bench_tally.h"

namespace timecache::cli {

// Sends what the options say to the server, over connections that are polled by
// one thread, the one that calls Run: as a load generator should, it takes one
// core at most, and no time to wake another thread. Not thread-safe, but for
// Interrupt.
class BenchRun final : public BenchListener {
 public:
  // Called some ten times a second during the run.
  using OnProgress = std::function<void(const BenchTally& tally)>;

  // `options`, `timeline` (may be null) must outlive it.
  BenchRun(const BenchOptions& options, std::FILE* timeline,
           OnProgress on_progress);
  ~BenchRun() override;

  // Runs to the end; to be called once. An error is of the connection, the
  // server or the namespace; those of operations, which end the run as well,
  // are in the tally.
  absl::Status Run();

  // Ends the run before its time; what was measured counts. For any thread.
  void Interrupt() { interrupted_ = true; }

  const BenchTally& tally() const { return tally_; }
  bool was_interrupted() const { return interrupted_; }
  // CPU time of this process, from the first message to the last answer.
  double cpu_seconds() const { return cpu_seconds_; }
  // With a rate: messages that were due and could not be sent, because as many
  // were in flight as may be.
  uint64_t messages_not_sent() const;

 private:
  void Answered(BenchSender& sender, int64_t due_ns,
                const BenchCounts& counts) override;
  void OperationFailed(const absl::Status& error) override;
  void Failed(const absl::Status& why) override;

  void Connect();
  // Polls until all senders can send, or one has failed.
  void Open();
  void Close();
  // Takes one event, or waits for one for a while.
  void Poll();
  std::chrono::system_clock::time_point PollUntil() const;
  // Sends on it what may be sent now.
  void Send(BenchSender& sender, int64_t now_ns);
  void SendDue();
  // Whether a message may be sent now, and since when it should have been.
  bool TakeTurn(int64_t now_ns, int64_t& due_ns);
  bool IsOver() const;

  const BenchOptions& options_;
  const OnProgress on_progress_;
  const double interval_ns_;  // Between messages; 0: as fast as it goes.
  std::atomic<bool> interrupted_ = false;

  BenchKeys keys_;
  BenchTally tally_;
  absl::Status failure_;
  double cpu_seconds_ = 0;

  bool sending_ = false;  // Between the first message and the last.
  int64_t end_ns_ = 0;
  uint64_t operations_left_;
  double next_due_ns_ = 0;
  uint64_t in_flight_ = 0;
  int64_t heard_ns_ = 0;  // The last answer, or the first message.
  size_t next_sender_ = 0;
  bool all_busy_ = false;  // With a rate: only an answer lets more be sent.

  grpc::CompletionQueue queue_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<BenchSender>> senders_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_BENCH_RUN_H_
