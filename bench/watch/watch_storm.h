// Many entries that all die in one bucket at a moment known beforehand.

#ifndef TIMECACHED_BENCH_WATCH_WATCH_STORM_H_
#define TIMECACHED_BENCH_WATCH_WATCH_STORM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "timecache/v1/data.pb.h"

namespace timecache::bench {

inline constexpr uint64_t kStormKeyBytes = 16;
inline constexpr uint64_t kStormValueBytes = 64;

// A benchmark that failed measures nothing: says what, and ends the program
// with exit code 1. From any thread.
[[noreturn]] void Fail(const std::string& what);

// Adds `count` puts of keys with the numbers from `first` on; the caller may
// give each a time to live.
void AppendPuts(uint64_t first, uint64_t count, v1::ExecuteRequest* request);

// A namespace of its own with one bucket that is as wide as needed. The
// boundaries of buckets are the multiples of the width, so a width that divides
// the wanted moment makes it one. Not thread-safe.
class Storm {
 public:
  // Makes the namespace on the server behind `channel`. All calls end by
  // `give_up`, and the program with them if one fails.
  Storm(std::shared_ptr<grpc::Channel> channel, uint64_t entries,
        absl::Duration lead, absl::Time give_up);
  // Deletes it.
  ~Storm();
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

  // Puts all entries. Ends the program if one is refused, or if the death comes
  // first. Returns how long before the death it was done.
  absl::Duration Fill();

  const std::string& name() const { return name_; }
  uint64_t entries() const { return entries_; }
  // When all of them die. At most a few milliseconds before now + lead.
  absl::Time death() const { return death_; }
  absl::Time give_up() const { return give_up_; }

 private:
  void Create(absl::Duration width);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::string name_;
  const uint64_t entries_;
  const absl::Time give_up_;
  absl::Time death_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_WATCH_WATCH_STORM_H_
