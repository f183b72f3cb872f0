// What DecodeDeadLetter reads, of this server and of older ones.
#include "timecache/dead_letter.h"

#include <string>

#include "client/cpp/src/data/convert.h"
#include "gtest/gtest.h"
#include "timecache/v1/watch.pb.h"

namespace timecache {
namespace {

v1::ExpiredEvent Event() {
  v1::ExpiredEvent event;
  event.set_namespace_("orders");
  event.set_key("order-17");
  event.set_value("3 shoes");
  event.set_version(4711);
  event.set_cause(v1::EXPIRY_CAUSE_EXPIRED);
  event.set_attempt(5);
  *event.mutable_death_time() = ToProto(absl::FromUnixSeconds(30));
  *event.mutable_own_ttl() = ToProto(absl::Minutes(2));
  return event;
}

Entry MakeEntry(const std::string& key, const std::string& value) {
  Entry entry;
  entry.key = key;
  entry.value = value;
  entry.put_time = absl::FromUnixSeconds(90);
  return entry;
}

Entry EntryOf(const v1::ExpiredEvent& event,
              const std::string& key = "orders/billing/7") {
  return MakeEntry(key, event.SerializeAsString());
}

TEST(DeadLetterTest, SaysWhatTheEnvelopeSays) {
  v1::ExpiredEvent event = Event();
  event.set_event_id(7);
  v1::DeadLetter& told = *event.mutable_dead_letter();
  told.set_group("billing");
  told.set_attempts(6);
  told.set_reason(v1::DEAD_LETTER_REASON_TIMED_OUT);
  *told.mutable_time() = ToProto(absl::FromUnixSeconds(80));
  // Also if it was put under another key.
  for (const char* key : {"orders/billing/7", "kept"}) {
    const auto letter = DecodeDeadLetter(EntryOf(event, key));
    ASSERT_TRUE(letter.ok()) << letter.status();
    EXPECT_EQ(letter->group, "billing");
    EXPECT_EQ(letter->attempts, 6u);
    EXPECT_EQ(letter->reason, DeadLetterReason::kTimedOut);
    EXPECT_EQ(letter->time, absl::FromUnixSeconds(80));
    EXPECT_EQ(letter->event.ns, "orders");
    EXPECT_EQ(letter->event.key, "order-17");
    EXPECT_EQ(letter->event.value, "3 shoes");
    EXPECT_EQ(letter->event.event_id, 7u);
    EXPECT_EQ(letter->event.own_ttl, absl::Minutes(2));
    EXPECT_EQ(letter->event.death_time, absl::FromUnixSeconds(30));
  }
  event.mutable_dead_letter()->set_reason(v1::DEAD_LETTER_REASON_NACKED);
  EXPECT_EQ(DecodeDeadLetter(EntryOf(event))->reason,
            DeadLetterReason::kNacked);
}

TEST(DeadLetterTest, OfAnOlderServerTheKeySaysTheGroup) {
  const auto letter = DecodeDeadLetter(EntryOf(Event()));
  ASSERT_TRUE(letter.ok()) << letter.status();
  EXPECT_EQ(letter->group, "billing");
  EXPECT_EQ(letter->attempts, 5u);
  EXPECT_EQ(letter->reason, DeadLetterReason::kUnknown);
  EXPECT_EQ(letter->time, absl::FromUnixSeconds(90));
  EXPECT_EQ(letter->event.event_id, 7u);
}

TEST(DeadLetterTest, OtherEntriesAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      DecodeDeadLetter(MakeEntry("orders/billing/7", "text")).status()));
  EXPECT_FALSE(DecodeDeadLetter(MakeEntry("orders/billing/7", "")).ok());
  EXPECT_FALSE(DecodeDeadLetter(EntryOf(Event(), "orders/billing")).ok());
  EXPECT_FALSE(DecodeDeadLetter(EntryOf(Event(), "carts/billing/7")).ok());
  EXPECT_FALSE(DecodeDeadLetter(EntryOf(Event(), "orders/billing/x")).ok());
  Entry parts = EntryOf(Event());
  parts.parts = GatheredParts{};
  EXPECT_FALSE(DecodeDeadLetter(parts).ok());
}

}  // namespace
}  // namespace timecache
