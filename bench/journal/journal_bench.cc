// What the journal of this machine's disk does: appends at several depths, and
// replay. One line for each load on standard output.
//
//   journal_bench [DIRECTORY [SECONDS]]
//
// DIRECTORY (default: journal_bench.tmp in the working directory) must not
// exist and is removed afterwards; take one on the disk in question, since
// /tmp may be memory. Each load of appends runs for SECONDS (default 3).
//
// `written` is what the process gave to the disk for each byte of records, as
// /proc/self/io counts it: pages of 4 KiB, so it is large where a group is
// small, on any file system.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "server/log/local/local_journal.h"

namespace timecache::server {
namespace {

constexpr uint32_t kPartitions = 8;

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

uint64_t BytesToDisk() {
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value;
  while (io >> key >> value) {
    if (key == "write_bytes:") return value;
  }
  return 0;
}

std::unique_ptr<LocalJournal> Open(const std::string& directory) {
  LocalJournalOptions options;
  options.partitions = kPartitions;
  auto journal = LocalJournal::Open(directory, options);
  if (!journal.ok()) {
    std::fprintf(stderr, "%s\n", journal.status().ToString().c_str());
    std::exit(EXIT_FAILURE);
  }
  return *std::move(journal);
}

struct Load {
  const char* name;
  Durability durability;
  int depth;  // appends that wait at a time
  size_t record_bytes;
};

// Appends as many at a time as the load says, each followed by the next.
class Callers {
 public:
  Callers(LocalJournal* journal, const Load& load, double seconds)
      : journal_(journal),
        load_(load),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds))),
        record_(load.record_bytes, 'r'),
        left_(load.depth) {
    for (size_t i = 0; i < record_.size(); ++i) {
      record_[i] = static_cast<char>(i * 131 + i / 256);
    }
  }

  // The latencies of all appends, in seconds.
  std::vector<double> Run() {
    for (int caller = 0; caller < load_.depth; ++caller) Append(caller);
    left_.Wait();
    std::sort(latencies_.begin(), latencies_.end());
    return std::move(latencies_);
  }

 private:
  void Append(int caller) {
    const Clock::time_point began = Clock::now();
    journal_->Append(
        caller % kPartitions, {record_}, load_.durability,
        [this, caller, began](const absl::StatusOr<uint64_t>& result, auto) {
          if (!result.ok()) std::abort();
          const Clock::time_point now = Clock::now();
          // On the committer's thread alone.
          latencies_.push_back(Seconds(now - began));
          if (now < end_) {
            Append(caller);
          } else {
            left_.DecrementCount();
          }
        });
  }

  LocalJournal* const journal_;
  const Load load_;
  const Clock::time_point end_;
  std::string record_;
  std::vector<double> latencies_;
  absl::BlockingCounter left_;
};

void RunLoad(const std::string& directory, const Load& load, double seconds) {
  std::filesystem::remove_all(directory);
  auto journal = Open(directory);
  const uint64_t disk_before = BytesToDisk();
  const Clock::time_point began = Clock::now();
  const std::vector<double> latencies =
      Callers(journal.get(), load, seconds).Run();
  const double took = Seconds(Clock::now() - began);
  const JournalStatistics statistics = journal->statistics();
  journal = nullptr;
  const auto bytes = static_cast<double>(statistics.appended_bytes);
  std::printf(
      "%-5s depth %3d, %5zu B: %7.0f commits/s %9.0f appends/s %7.1f MB/s, "
      "p50 %7.0f us p99 %7.0f us, %5.1f a group, written %.2f\n",
      load.name, load.depth, load.record_bytes,
      static_cast<double>(statistics.commits) / took,
      static_cast<double>(statistics.appends) / took, bytes / took / 1e6,
      latencies[latencies.size() / 2] * 1e6,
      latencies[latencies.size() * 99 / 100] * 1e6,
      static_cast<double>(statistics.appends) /
          static_cast<double>(statistics.commits),
      static_cast<double>(BytesToDisk() - disk_before) / bytes);
}

// Reads all of the journal on so many threads, each with its partitions.
void RunReplay(const std::string& directory, int threads) {
  const Clock::time_point opened = Clock::now();
  const auto journal = Open(directory);
  const Clock::time_point began = Clock::now();
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint64_t> records = 0;
  std::vector<std::thread> readers;
  readers.reserve(static_cast<size_t>(threads));
  for (int thread = 0; thread < threads; ++thread) {
    readers.emplace_back([&, thread] {
      std::vector<Journal::ReadFrom> from;
      for (uint32_t p = thread; p < kPartitions; p += threads) {
        from.push_back({p, journal->First(p)});
      }
      uint64_t my_bytes = 0;
      uint64_t my_records = 0;
      const absl::Status status = journal->Read(
          from, [&](uint32_t, uint64_t, absl::string_view record) {
            my_bytes += record.size();
            ++my_records;
            return absl::OkStatus();
          });
      if (!status.ok()) std::abort();
      bytes += my_bytes;
      records += my_records;
    });
  }
  for (std::thread& reader : readers) reader.join();
  const double took = Seconds(Clock::now() - began);
  std::printf(
      "replay, %d threads: %.1f MB in %.3f s after %.3f s to open: "
      "%.1f MB/s %.0f records/s\n",
      threads, static_cast<double>(bytes) / 1e6, took, Seconds(began - opened),
      static_cast<double>(bytes) / took / 1e6,
      static_cast<double>(records) / took);
}

void Fill(const std::string& directory, size_t record_bytes, uint64_t bytes) {
  std::filesystem::remove_all(directory);
  auto journal = Open(directory);
  const std::string record(record_bytes, 'r');
  for (uint64_t filled = 0; filled < bytes;) {
    absl::BlockingCounter done(1000);
    for (int i = 0; i < 1000; ++i, filled += record_bytes) {
      journal->Append(i % kPartitions, {record}, Durability::kAsync,
                      [&](const absl::StatusOr<uint64_t>& result, auto) {
                        if (!result.ok()) std::abort();
                        done.DecrementCount();
                      });
    }
    done.Wait();
  }
}

void Main(const std::string& directory, double seconds) {
  if (std::filesystem::exists(directory)) {
    std::fprintf(stderr, "%s exists\n", directory.c_str());
    std::exit(EXIT_FAILURE);
  }
  constexpr Load kLoads[] = {
      {"SYNC", Durability::kSync, 1, 200},
      {"SYNC", Durability::kSync, 16, 200},
      {"SYNC", Durability::kSync, 256, 200},
      {"SYNC", Durability::kSync, 16, 12'000},
      {"ASYNC", Durability::kAsync, 1, 200},
      {"ASYNC", Durability::kAsync, 256, 200},
      {"ASYNC", Durability::kAsync, 16, 12'000},
  };
  for (const Load& load : kLoads) RunLoad(directory, load, seconds);
  for (const size_t record_bytes : {size_t{200}, size_t{12'000}}) {
    Fill(directory, record_bytes, uint64_t{500} << 20);
    std::printf("records of %zu B; ", record_bytes);
    RunReplay(directory, 1);
    std::printf("records of %zu B; ", record_bytes);
    RunReplay(directory, 2);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace timecache::server

int main(int argc, char** argv) {
  timecache::server::Main(argc > 1 ? argv[1] : "journal_bench.tmp",
                          argc > 2 ? std::atof(argv[2]) : 3);
  return EXIT_SUCCESS;
}
