// timecachectl dead, and the warnings of ns, against a stand-in for the server.
#include <string>
#include <vector>

#include "client/cpp/src/data/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"
#include "timecache/v1/watch.pb.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliDeadTest : public CliTest {
 protected:
  CliDeadTest() {
    for (const char* ns : {"orders", "carts", "failed"}) {
      EXPECT_TRUE(client_.CreateNamespace(ns).ok());
    }
  }

  static v1::ExpiredEvent Event(const std::string& ns, const std::string& key) {
    v1::ExpiredEvent event = MakeDelivery(ns, key, 7, 5).events(0);
    v1::DeadLetter& letter = *event.mutable_dead_letter();
    letter.set_group("billing");
    letter.set_attempts(5);
    letter.set_reason(v1::DEAD_LETTER_REASON_NACKED);
    *letter.mutable_time() = ToProto(absl::FromUnixSeconds(60));
    return event;
  }

  void PutLetter(const std::string& key, const v1::ExpiredEvent& event) {
    EXPECT_TRUE(client_.In("failed").Put(key, event.SerializeAsString()).ok());
  }

  test::Exit Dead(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"-n", "failed", "dead"});
    return Run(std::move(arguments));
  }

  bool HasLetter(const std::string& key) {
    return client_.In("failed").Contains(key).value();
  }
};

TEST_F(CliDeadTest, ListFiltersByNamespaceAndGroup) {
  PutLetter("orders/billing/7", Event("orders", "one"));
  PutLetter("carts/billing/8", Event("carts", "two"));
  v1::ExpiredEvent old = Event("orders", "three");
  old.clear_dead_letter();
  PutLetter("orders/mail/9", old);
  const std::string one =
      "1970-01-01T00:01:00.000Z\tnacked\t5\torders/billing/7\tone\n";
  const std::string two =
      "1970-01-01T00:01:00.000Z\tnacked\t5\tcarts/billing/8\ttwo\n";
  const std::string three =
      "1970-01-01T00:00:00.000Z\t-\t5\torders/mail/9\tthree\n";
  EXPECT_EQ(Dead({"list"}).out, two + one + three);
  EXPECT_EQ(Dead({"list", "--from", "orders"}).out, one + three);
  EXPECT_EQ(Dead({"list", "--group", "billing"}).out, two + one);
  EXPECT_EQ(Dead({"list", "--from", "orders", "--group", "mail"}).out, three);
  const json object =
      json::parse(Dead({"list", "--from", "carts", "--json"}).out);
  EXPECT_EQ(object["letter"], "carts/billing/8");
  EXPECT_EQ(object["group"], "billing");
  EXPECT_EQ(object["reason"], "nacked");
  EXPECT_EQ(object["event"]["value"], "value of two");
}

TEST_F(CliDeadTest, OtherEntriesAreCountedAndAMissingNamespaceIsHinted) {
  EXPECT_TRUE(client_.In("failed").Put("text", "text").ok());
  EXPECT_THAT(Dead({"list"}).err,
              HasSubstr("1 entries of namespace failed are no dead letters"));
  EXPECT_THAT(Run({"dead", "list"}).err,
              HasSubstr("name the namespace that they go to with -n"));
}

constexpr char kTraceparent[] =
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST_F(CliDeadTest, ShowPrintsAllOfIt) {
  v1::ExpiredEvent event = Event("orders", "one");
  *event.mutable_own_ttl() = ToProto(absl::Minutes(2));
  event.set_traceparent(kTraceparent);
  PutLetter("orders/billing/7", event);
  const test::Exit result = Dead({"show", "orders/billing/7"});
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* line :
       {"letter            orders/billing/7\n", "group             billing\n",
        "attempts          5\n", "last attempt      nacked\n",
        "namespace         orders\n", "key               one\n",
        "own ttl           2m\n", "traceparent       00-0af7651916cd43dd",
        "value             value of one\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  EXPECT_EQ(Dead({"show", "orders/billing/8"}).code, 1);
  EXPECT_TRUE(client_.In("failed").Put("text", "text").ok());
  const test::Exit other = Dead({"show", "text"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("text is no dead letter"));
}

TEST_F(CliDeadTest, ReturnPutsTheValueBackAndRemovesTheLetter) {
  v1::ExpiredEvent event = Event("orders", "one");
  *event.mutable_own_ttl() = ToProto(absl::Minutes(2));
  event.set_traceparent(kTraceparent);
  PutLetter("orders/billing/7", event);
  const test::Exit result = Dead({"return", "orders/billing/7"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "returned orders/billing/7 to orders as one\n");
  EXPECT_EQ(service_.Requests<v1::PutRequest>().back().traceparent(),
            kTraceparent);
  EXPECT_EQ(client_.In("orders").Get("one").value()->value, "value of one");
  EXPECT_EQ(service_.Last<v1::PutRequest>().ttl().seconds(), 120);
  EXPECT_EQ(service_.Last<v1::PutRequest>().condition(),
            v1::PUT_CONDITION_IF_ABSENT);
  EXPECT_FALSE(HasLetter("orders/billing/7"));
}

TEST_F(CliDeadTest, ReturnTakesAnotherTtl) {
  v1::ExpiredEvent event = Event("orders", "one");
  *event.mutable_own_ttl() = ToProto(absl::Minutes(2));
  PutLetter("orders/billing/7", event);
  EXPECT_EQ(Dead({"return", "orders/billing/7", "--ttl", "5s"}).code, 0);
  EXPECT_EQ(service_.Last<v1::PutRequest>().ttl().seconds(), 5);
}

TEST_F(CliDeadTest, LetterStaysWhereTheKeyExistsAgain) {
  PutLetter("orders/billing/7", Event("orders", "one"));
  PutLetter("orders/billing/8", Event("orders", "two"));
  EXPECT_TRUE(client_.In("orders").Put("one", "newer").ok());
  const test::Exit result =
      Dead({"return", "orders/billing/7", "orders/billing/8", "gone"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "returned orders/billing/8 to orders as two\n");
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("orders/billing/7: its key exists again in "
                              "namespace orders: replace that with "
                              "--overwrite"),
                    HasSubstr("gone: not found")));
  EXPECT_TRUE(HasLetter("orders/billing/7"));
  EXPECT_EQ(client_.In("orders").Get("one").value()->value, "newer");
  EXPECT_EQ(Dead({"return", "orders/billing/7", "--overwrite"}).code, 0);
  EXPECT_EQ(client_.In("orders").Get("one").value()->value, "value of one");
  EXPECT_FALSE(HasLetter("orders/billing/7"));
}

TEST_F(CliDeadTest, ReturnPutsPartsBack) {
  v1::ExpiredEvent event = Event("orders", "one");
  event.clear_value();
  event.mutable_parts()->add_expected_names("left");
  event.mutable_parts()->add_expected_names("middle");
  event.mutable_parts()->add_expected_names("right");
  for (const char* name : {"left", "right"}) {
    v1::GatheredPart& part = *event.mutable_parts()->add_parts();
    part.set_name(name);
    part.set_value(std::string("the ") + name);
  }
  PutLetter("orders/billing/7", event);
  EXPECT_TRUE(client_.In("orders").Put("one", "newer").ok());
  EXPECT_EQ(Dead({"return", "orders/billing/7"}).code, 1);
  EXPECT_TRUE(HasLetter("orders/billing/7"));
  EXPECT_EQ(Dead({"return", "orders/billing/7", "--overwrite"}).code, 0);
  const auto entry = client_.In("orders").Get("one").value();
  ASSERT_TRUE(entry && entry->parts);
  ASSERT_EQ(entry->parts->parts.size(), 2u);
  EXPECT_EQ(entry->parts->parts[1].value, "the right");
  EXPECT_EQ(entry->parts->expected_names.size(), 3u);
}

TEST_F(CliDeadTest, LetterOfANamespaceThatIsGoneStays) {
  PutLetter("gone/billing/7", Event("gone", "one"));
  const test::Exit result = Dead({"return", "gone/billing/7"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("gone does not exist"));
  EXPECT_TRUE(HasLetter("gone/billing/7"));
}

TEST_F(CliDeadTest, AllOfThemAreReturnedOrDropped) {
  PutLetter("orders/billing/7", Event("orders", "one"));
  PutLetter("orders/billing/8", Event("orders", "two"));
  PutLetter("carts/billing/9", Event("carts", "three"));
  EXPECT_TRUE(client_.In("failed").Put("text", "text").ok());
  EXPECT_EQ(Dead({"return", "--all", "--from", "orders"}).code, 0);
  EXPECT_TRUE(client_.In("orders").Contains("two").value());
  EXPECT_FALSE(HasLetter("orders/billing/8"));
  EXPECT_TRUE(HasLetter("carts/billing/9"));
  const test::Exit dropped = Dead({"drop", "--all", "--json"});
  EXPECT_EQ(dropped.code, 0) << dropped.err;
  EXPECT_EQ(json::parse(dropped.out),
            json({{"letter", "carts/billing/9"}, {"dropped", true}}));
  EXPECT_FALSE(HasLetter("carts/billing/9"));
  EXPECT_TRUE(HasLetter("text"));
}

TEST_F(CliDeadTest, DropRemovesLettersAlone) {
  PutLetter("orders/billing/7", Event("orders", "one"));
  EXPECT_TRUE(client_.In("failed").Put("text", "text").ok());
  EXPECT_EQ(Dead({"drop", "orders/billing/7"}).out,
            "dropped orders/billing/7\n");
  EXPECT_FALSE(HasLetter("orders/billing/7"));
  EXPECT_EQ(Dead({"drop", "text"}).code, 2);
  EXPECT_TRUE(HasLetter("text"));
  EXPECT_EQ(Dead({"drop"}).code, 2);
  EXPECT_EQ(Dead({"drop", "key", "--all"}).code, 2);
  EXPECT_EQ(Dead({"return", "key", "--from", "orders"}).code, 2);
}

TEST_F(CliDeadTest, NamespaceCommandsPrintTheServersWarnings) {
  const test::Exit created =
      Run({"ns", "create", "new", "--dead-letter", "nope"});
  EXPECT_EQ(created.code, 0);
  EXPECT_THAT(
      created.err,
      StartsWith("timecachectl: the dead_letter_namespace nope does not "
                 "exist"));
  EXPECT_THAT(Run({"ns", "update", "new", "--dead-letter", "nope"}).err,
              HasSubstr("does not exist"));
  const json updated = RunJson({"ns", "update", "new", "--ttl", "5s"});
  EXPECT_EQ(updated["warnings"].size(), 1u);
  EXPECT_FALSE(RunJson({"ns", "get", "new"}).contains("warnings"));
}

}  // namespace
}  // namespace timecache
