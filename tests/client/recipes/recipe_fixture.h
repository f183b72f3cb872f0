// What recipes are tested with: a server in this process, on a clock that
// stands still, and clients on connections of their own.

#ifndef TIMECACHED_TESTS_CLIENT_RECIPES_RECIPE_FIXTURE_H_
#define TIMECACHED_TESTS_CLIENT_RECIPES_RECIPE_FIXTURE_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/delayed_store.h"
#include "tests/support/test_server.h"
#include "timecache/client.h"
#include "timecache/watcher.h"

namespace timecache::test {

class RecipeTest : public ::testing::Test {
 protected:
  // As another process would have it.
  Client MakeClient(ClientOptions options = {}) const {
    return Client(server_.NewChannel(), std::move(options));
  }

  void Pass(absl::Duration time) {
    server_.AdvanceBy(absl::ToInt64Microseconds(time));
  }
  absl::Time Now() const { return absl::FromUnixMicros(server_.now_us()); }

  // A watch that stands: what dies from now on, it tells.
  std::unique_ptr<Watcher> Watch(WatchOptions options = {}) const {
    auto watcher = std::make_unique<Watcher>(client_, std::move(options));
    EXPECT_TRUE(watcher->Next().ok());
    return watcher;
  }

  // All that it tells of deaths up to now.
  std::vector<ExpiredEvent> ReadEvents(Watcher& watcher) const {
    std::vector<ExpiredEvent> events;
    absl::Time watermark = absl::InfinitePast();
    while (watermark < Now()) {
      auto batch = watcher.Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) break;
      EXPECT_EQ(batch->lost, 0u);
      watermark = batch->watermark;
      for (ExpiredEvent& event : batch->events) {
        events.push_back(std::move(event));
      }
    }
    return events;
  }

  explicit RecipeTest(TestServerOptions options = {}) : server_(options) {}

  TestServer server_;
  const Client client_{server_.channel()};
};

// The same, with a store that can be held: a call is made then, but not
// answered, and its caller does not wait that long.
class UnansweredTest : public RecipeTest {
 protected:
  UnansweredTest() : UnansweredTest(std::make_shared<DelayedStore*>()) {}

  // Each of its calls is one attempt.
  Client MakeImpatientClient() const {
    return MakeClient(
        {.timeout = absl::Milliseconds(250), .retry = {.max_attempts = 1}});
  }

  // Makes the call, which comes to nothing as far as its caller knows, and then
  // happens.
  void LeaveUnanswered(absl::FunctionRef<absl::Status()> call) {
    store_->Hold();
    EXPECT_TRUE(absl::IsDeadlineExceeded(call()));
    store_->AwaitCall();
    store_->Release();
  }

 private:
  explicit UnansweredTest(std::shared_ptr<DelayedStore*> store)
      : RecipeTest(Options(store)), store_(*store) {}

  static TestServerOptions Options(std::shared_ptr<DelayedStore*> place) {
    TestServerOptions options;
    options.wrap_store = [place](server::Store* store) {
      auto delayed = std::make_unique<DelayedStore>(store);
      *place = delayed.get();
      return delayed;
    };
    return options;
  }

  DelayedStore* const store_;  // The server's.
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CLIENT_RECIPES_RECIPE_FIXTURE_H_
