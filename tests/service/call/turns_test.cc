// Tasks that share a thread.

#include "server/service/call/turns.h"

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

class FakeTask : public Turns::Task {
 public:
  FakeTask(Order* order, std::string name, int turns)
      : order_(order), name_(std::move(name)), turns_(turns) {}

  bool TakeTurn() override {
    order_->Note(name_);
    return --turns_ > 0;
  }

 private:
  Order* const order_;
  const std::string name_;
  int turns_;
};

// Holds the thread until what comes next has been queued.
class Gate : public Turns::Task {
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

TEST(TurnsTest, LongTasksOfOneFlowDoNotDelayAnother) {
  Order order;
  Turns turns;
  const auto gate = std::make_shared<Gate>();
  turns.Add("gate", gate);
  for (const char* name : {"a", "b", "c"}) {
    turns.Add("busy", std::make_shared<FakeTask>(&order, name, 2));
  }
  turns.Add("quiet", std::make_shared<FakeTask>(&order, "q", 2));
  gate->Open();
  EXPECT_THAT(order.Await(8),
              ElementsAre("a", "q", "b", "q", "c", "a", "b", "c"));
}

TEST(TurnsTest, WhatWaitsAtTheEndIsDropped) {
  Order order;
  const auto gate = std::make_shared<Gate>();
  const auto task = std::make_shared<FakeTask>(&order, "never", 1 << 30);
  {
    Turns turns;
    turns.Add("gate", gate);
    turns.Add("flow", task);
    gate->Open();
    order.Await(1);
  }
  EXPECT_EQ(task.use_count(), 1);
}

}  // namespace
}  // namespace timecache::server
