// Tasks that share a thread.

#include "server/rpc/call/fair_executor.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

// In which order tasks had their turns.
class Order {
 public:
  void Note(const std::string& name) {
    absl::MutexLock lock(&mu_);
    names_.push_back(name);
  }
  std::vector<std::string> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return names_.size() >= count;
    };
    mu_.Await(absl::Condition(&enough));
    return names_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mu_);
};

class FakeTask : public FairExecutor::Task {
 public:
  FakeTask(Order* order, std::string name, int turns)
      : order_(order), name_(std::move(name)), turns_left_(turns) {}

  bool TakeTurn() override {
    order_->Note(name_);
    return --turns_left_ > 0;
  }

 private:
  Order* const order_;
  const std::string name_;
  int turns_left_;
};

// Holds the thread until what comes next has been queued.
class BlockingTask : public FairExecutor::Task {
 public:
  bool TakeTurn() override {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&open_));
    return false;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    open_ = true;
  }

 private:
  absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(FairExecutorTest, LongTasksOfOneFlowDoNotDelayAnother) {
  Order order;
  FairExecutor executor;
  const auto blocking = std::make_shared<BlockingTask>();
  executor.Add("blocking", blocking);
  for (const char* name : {"a", "b", "c"}) {
    executor.Add("busy", std::make_shared<FakeTask>(&order, name, 2));
  }
  executor.Add("quiet", std::make_shared<FakeTask>(&order, "q", 2));
  blocking->Open();
  EXPECT_THAT(order.Await(8),
              ElementsAre("a", "q", "b", "q", "c", "a", "b", "c"));
}

TEST(FairExecutorTest, WhatWaitsAtTheEndIsDropped) {
  Order order;
  const auto blocking = std::make_shared<BlockingTask>();
  const auto task = std::make_shared<FakeTask>(&order, "never", 1 << 30);
  {
    FairExecutor executor;
    executor.Add("blocking", blocking);
    executor.Add("flow", task);
    blocking->Open();
    order.Await(1);
  }
  EXPECT_EQ(task.use_count(), 1);
}

}  // namespace
}  // namespace timecache::server
