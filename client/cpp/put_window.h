// Many puts at once: a bounded number of them in flight on one connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/client.h"

namespace timecache::inline client {

// Puts without waiting for each answer: several times the rate of Client::Put.
// Puts of one key are applied in the order in which they were given; those of
// different keys in any order.
//
// Thread-safe. Memory is bounded: Put blocks while as many puts, or as many of
// their bytes, are in flight as allowed.
class PutWindow {
 public:
  // Most bytes of keys and values in flight; one larger put goes alone.
  static constexpr size_t kMaxBytesInFlight = 32 << 20;

  // Told of each put's outcome, on another thread and possibly several at a
  // time. Must be quick and must not call the window.
  using Done = std::function<void(const absl::StatusOr<PutResult>& result)>;

  // Puts into the client's namespace, each with the client's timeout.
  explicit PutWindow(const Client& client, size_t puts_in_flight_max = 64);
  // Waits for the answers.
  ~PutWindow();

  PutWindow(const PutWindow&) = delete;
  PutWindow& operator=(const PutWindow&) = delete;

  // Sends a put; blocks while the window is full or a put of the same key is in
  // flight. `done` is called exactly once.
  void Put(std::string_view key, std::string_view value,
           const PutOptions& options, Done done);

  // Waits until no put is in flight.
  void Flush();

 private:
  struct Call;

  void Finish(Call* call);

  const ClientOptions options_;
  const size_t puts_in_flight_max_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;

  absl::Mutex mu_;
  // At most puts_in_flight_max_.
  absl::flat_hash_set<std::string> keys_in_flight_ ABSL_GUARDED_BY(mu_);
  size_t bytes_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::inline client
