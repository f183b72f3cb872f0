// Calls to several partitions that complete as one.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_GATHER_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_GATHER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace timecache::server {

// Calls `start(i, done_i)` for each i below `count`, in order, and `done` with all
// results, in that order, when each done_i was called: on the thread of the last
// one, which may be this one. `count` > 0. T may be move-only.
template <typename T>
void CollectAll(
    size_t count,
    absl::FunctionRef<void(
        size_t part, absl::AnyInvocable<void(absl::StatusOr<T>)> done_of_part)>
        start,
    absl::AnyInvocable<void(std::vector<absl::StatusOr<T>>)> done) {
  // Each result is written by one thread; the last of them has seen all.
  struct Calls {
    std::vector<absl::StatusOr<T>> results;
    std::atomic<size_t> left;
    absl::AnyInvocable<void(std::vector<absl::StatusOr<T>>)> done;
  };
  const auto calls = std::make_shared<Calls>();
  calls->results.resize(count);
  calls->left = count;
  calls->done = std::move(done);
  for (size_t i = 0; i < count; ++i) {
    start(i, [calls, i](absl::StatusOr<T> result) {
      calls->results[i] = std::move(result);
      if (calls->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
      std::exchange(calls->done, nullptr)(std::move(calls->results));
    });
  }
}

// The same with the results themselves, or with the error of the first part that
// has one.
template <typename T>
void GatherAll(
    size_t count,
    absl::FunctionRef<void(
        size_t part, absl::AnyInvocable<void(absl::StatusOr<T>)> done_of_part)>
        start,
    absl::AnyInvocable<void(absl::StatusOr<std::vector<T>>)> done) {
  CollectAll<T>(
      count, start,
      [done = std::move(done)](std::vector<absl::StatusOr<T>> results) mutable {
        std::vector<T> values;
        values.reserve(results.size());
        for (absl::StatusOr<T>& result : results) {
          if (!result.ok()) return done(result.status());
          values.push_back(*std::move(result));
        }
        done(std::move(values));
      });
}

// The same of calls that have no result.
inline void GatherStatus(
    size_t count,
    absl::FunctionRef<void(size_t part,
                           absl::AnyInvocable<void(absl::Status)> done_of_part)>
        start,
    absl::AnyInvocable<void(absl::Status)> done) {
  struct Nothing {};
  GatherAll<Nothing>(
      count,
      [&](size_t part,
          absl::AnyInvocable<void(absl::StatusOr<Nothing>)> done_of_part) {
        start(part, [done_of_part =
                         std::move(done_of_part)](absl::Status status) mutable {
          if (!status.ok()) return done_of_part(std::move(status));
          done_of_part(Nothing());
        });
      },
      [done = std::move(done)](
          const absl::StatusOr<std::vector<Nothing>>& all) mutable {
        done(all.status());
      });
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_GATHER_H_
