// What the recipes keep in a durable namespace when their server is killed.

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/recipes/acker.h"
#include "timecache/recipes/array.h"
#include "timecache/recipes/event_log.h"
#include "timecache/recipes/join.h"
#include "timecache/recipes/lock.h"
#include "timecache/recipes/table.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class RecipesTest : public ::testing::Test {
 protected:
  RecipesTest() {
    Start("127.0.0.1:0");
    client_ = std::make_unique<Client>(Client(server_->address()).In("kept"));
    NamespaceOptions options;
    options.ttl = absl::Hours(1);
    options.durability = Durability::kSync;
    const auto created = client_->CreateNamespace("kept", options);
    EXPECT_TRUE(created.ok()) << created.status();
  }
  // At the same address: its clients go on.
  void KillAndRestart() {
    const std::string address = server_->address();
    server_->process().Signal(SIGKILL);
    server_->process().Wait();
    Start(address);
  }
  const Client& client() const { return *client_; }

 private:
  void Start(const std::string& address) {
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--listen", address, "--journal", directory_.path() + "/journal"});
  }

  server::TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(RecipesTest, ALockHasItsOwnerAndTokensGrow) {
  Lock owner(client(), "lock", {.ttl = absl::Minutes(5)});
  const auto token = owner.TryAcquire();
  ASSERT_TRUE(token.ok() && *token) << token.status();
  KillAndRestart();
  Lock other(client(), "lock", {.ttl = absl::Minutes(5)});
  const auto refused = other.TryAcquire();
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(*refused, std::nullopt);
  const auto renewed = owner.Renew();
  EXPECT_TRUE(renewed.ok() && *renewed) << renewed.status();
  const auto released = owner.Release();
  EXPECT_TRUE(released.ok() && *released) << released.status();
  const auto later = other.TryAcquire();
  ASSERT_TRUE(later.ok() && *later) << later.status();
  EXPECT_GT(**later, **token);
}

TEST_F(RecipesTest, ARowIsJoinedOfTuplesFromBeforeAndAfter) {
  const Join join(client(), "join", {.sources = {"gender", "age"}});
  const auto first = join.Add("1", "gender", "female");
  ASSERT_TRUE(first.ok() && !*first) << first.status();
  KillAndRestart();
  const auto second = join.Add("1", "age", "21");
  ASSERT_TRUE(second.ok() && *second) << second.status();
  EXPECT_THAT((*second)->tuples, ElementsAre("female", "21"));
}

TEST_F(RecipesTest, ATreeIsDoneWhenTheLastTupleIs) {
  const Acker acker(client(), "acker");
  const uint64_t sentence = Acker::NewId();
  const uint64_t word = Acker::NewId();
  ASSERT_TRUE(acker.Track("root", {sentence}).ok());
  const auto emitted = acker.Ack("root", sentence, {word});
  ASSERT_TRUE(emitted.ok() && !*emitted) << emitted.status();
  KillAndRestart();
  const auto done = acker.Ack("root", word);
  EXPECT_TRUE(done.ok() && *done) << done.status();
}

TEST_F(RecipesTest, ListsTablesAndLogsHaveWhatWasAdded) {
  const Array array(client(), "array");
  const Table table(client(), "table");
  const EventLog log(client(), "log");
  const absl::Time now = absl::Now();
  EventLog::Position position = log.PositionAt(now);
  for (const char* text : {"before", "after"}) {
    ASSERT_TRUE(array.Add(text).ok());
    ASSERT_TRUE(table.Add(text).ok());
    ASSERT_TRUE(log.Append(now, text).ok());
    const auto page = log.ReadNew(&position, now);
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_EQ(page->events.size(), 1u);
    EXPECT_EQ(page->events[0].data, text);
    KillAndRestart();
  }
  const auto contents = array.Read();
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->items.size(), 2u);
  EXPECT_EQ(contents->items[0].value, "before");
  EXPECT_EQ(contents->items[1].value, "after");
  const auto members = table.List();
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_THAT(*members, UnorderedElementsAre("before", "after"));
}

}  // namespace
}  // namespace timecache::test
