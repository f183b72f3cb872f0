// What the tests of timecache::GroupWorker have in common.

#ifndef TIMECACHED_TESTS_CLIENT_CPP_GROUP_WORKER_FIXTURE_H_
#define TIMECACHED_TESTS_CLIENT_CPP_GROUP_WORKER_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/group_worker.h"

namespace timecache {

inline grpc::Status Unavailable() {
  return MakeError(grpc::StatusCode::UNAVAILABLE, "draining", v1::DRAINING);
}

// Makes it the settlement's result.
inline void Refuse(const grpc::Status& status, v1::SettleResult* result) {
  result->mutable_error()->ParseFromString(status.error_details());
}

// First attempts of the events first, first + 1, ...
inline v1::WatchExpiredResponse Deliveries(uint64_t first, int count) {
  v1::WatchExpiredResponse batch = MakeBatch("default", "", 0, 41);
  for (int i = 0; i < count; ++i) {
    const uint64_t id = first + static_cast<uint64_t>(i);
    batch.MergeFrom(MakeDelivery("default", absl::StrCat("key", id), id, 1));
  }
  return batch;
}

// A group worker's server, which settles all there is and notes it.
class GroupWorkerFixture : public ::testing::Test {
 protected:
  GroupWorkerOptions Quick() {
    return {.group = "billing",
            .threads = 2,
            .settle_linger = absl::ZeroDuration(),
            .min_pause = absl::Milliseconds(1),
            .max_pause = absl::Milliseconds(4),
            .on_error = [this](const absl::Status& why) {
              absl::MutexLock lock(&mu_);
              errors_.push_back(why);
            }};
  }

  void SetUp() override {
    service_.OnSettle([this](const v1::SettleExpiredRequest& request,
                             v1::SettleExpiredResponse*) {
      Note(request);
      return grpc::Status::OK;
    });
  }

  void Note(const v1::SettleExpiredRequest& request) {
    absl::MutexLock lock(&mu_);
    for (const v1::Settlement& settlement : request.settlements()) {
      settled_.push_back(settlement);
    }
  }

  // The first `count` settlements that were tried, once there are so many.
  std::vector<v1::Settlement> AwaitSettled(size_t count) {
    const auto are_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return settled_.size() >= count;
    };
    absl::MutexLock lock(&mu_, absl::Condition(&are_there));
    return settled_;
  }

  std::vector<absl::Status> errors() {
    absl::MutexLock lock(&mu_);
    return errors_;
  }

  FakeService service_;
  Client client_ = service_.MakeClient();
  absl::Mutex mu_;
  std::vector<v1::Settlement> settled_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Status> errors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CPP_GROUP_WORKER_FIXTURE_H_
