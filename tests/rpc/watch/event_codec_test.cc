// The hand-written wire form beside the generated classes.
#include "server/rpc/watch/event_codec.h"

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "server/base/clock.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/watch/delivery_token.h"
#include "server/rpc/watch/watch_message.h"
#include "tests/support/effort.h"
#include "timecache/v1/data.pb.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kNowUs = 1'700'000'000'123'456;

// An event that owns its bytes.
struct Sample {
  std::string key;
  std::string value;
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t deadline_us = 0;
  int64_t create_us = 0;
  int64_t own_ttl_us = 0;
  std::string trace = {};

  ExpiredEvent event() const {
    return {key,   value,     version,    put_us, deadline_us,
            false, create_us, own_ttl_us, trace};
  }
};

class RandomSamples {
 public:
  explicit RandomSamples(uint64_t seed) : random_(seed) {}

  // Sizes and numbers of all magnitudes: each length of a varint comes up.
  uint64_t Number(int max_bits) {
    const int bits = static_cast<int>(random_() % (max_bits + 1));
    return bits == 0 ? 0 : random_() >> (64 - bits);
  }
  std::string Bytes(int max_bits) {
    std::string bytes(Number(max_bits), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  int64_t TimeUs() {
    switch (random_() % 4) {
      case 0:  // a whole second: no nanos
        return static_cast<int64_t>(Number(31)) * kMicrosPerSecond;
      case 1:  // before 1970
        return -static_cast<int64_t>(Number(50));
      default:
        return kNowUs + static_cast<int64_t>(Number(50));
    }
  }
  Sample Next() {
    return {"k" + Bytes(12),  // No key is empty.
            Bytes(18),
            Number(64),
            TimeUs(),
            TimeUs(),
            TimeUs(),
            static_cast<int64_t>(Number(49)),
            random_() % 4 == 0
                ? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                : ""};
  }
  Death NextDeath() {
    return {TimeUs(), TimeUs(), static_cast<Cause>(random_() % 4)};
  }

 private:
  std::mt19937_64 random_;
};

// The same by the generated classes.
void AddGenerated(const std::string& map, const Death& death,
                  const Sample& sample, v1::WatchExpiredResponse* message) {
  v1::ExpiredEvent* const event = message->add_events();
  event->set_namespace_(map);
  event->set_key(sample.key);
  event->set_value(sample.value);
  event->set_version(sample.version);
  SetTime(sample.put_us, event->mutable_put_time());
  SetTime(sample.deadline_us, event->mutable_deadline());
  SetTime(death.death_us, event->mutable_death_time());
  SetTime(death.published_us, event->mutable_delivered_at());
  constexpr v1::ExpiryCause kCauses[] = {
      v1::EXPIRY_CAUSE_EXPIRED, v1::EXPIRY_CAUSE_EVICTED,
      v1::EXPIRY_CAUSE_ROTATED, v1::EXPIRY_CAUSE_EXPIRING};
  event->set_cause(kCauses[static_cast<size_t>(death.cause)]);
  SetTime(sample.create_us, event->mutable_create_time());
  if (sample.own_ttl_us != 0) {
    SetDuration(sample.own_ttl_us, event->mutable_own_ttl());
  }
  event->set_traceparent(sample.trace);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::vector<std::string> KeysOf(const EventBatch& batch) {
  std::vector<std::string> keys;
  for (int i = 0; i < batch.size(); ++i) {
    keys.emplace_back(batch.event(i).key);
  }
  return keys;
}

// What is encoded once is written to watches of all three methods.
TEST(EventCodecTest, TheResponsesOfAllMethodsAgree) {
  const auto& watch = *v1::WatchExpiredResponse::descriptor();
  for (const auto* other : {v1::ConsumeExpiredResponse::descriptor(),
                            v1::WatchExpiringResponse::descriptor()}) {
    EXPECT_GE(other->field_count(), 3) << other->name();
    for (int i = 0; i < other->field_count(); ++i) {
      const auto& field = *other->field(i);
      // Of a group, which has no resume token.
      if (field.name() == "delivered_watermark") continue;
      const auto* const same = watch.FindFieldByNumber(field.number());
      ASSERT_NE(same, nullptr) << field.full_name();
      EXPECT_EQ(field.name(), same->name());
      EXPECT_EQ(field.type(), same->type()) << field.full_name();
      EXPECT_EQ(field.label(), same->label()) << field.full_name();
      EXPECT_EQ(field.message_type(), same->message_type())
          << field.full_name();
    }
  }
}

TEST(EventCodecTest, PartsTakeThePlaceOfAValue) {
  v1::GatheredParts parts;
  parts.set_expected_parts(3);
  parts.add_parts()->set_name("a");
  parts.add_parts()->set_value(std::string(300, 'v'));
  const std::string bytes = parts.SerializeAsString();
  const Death death = {kNowUs + 20, kNowUs + 30, Cause::kExpired};
  const ExpiredEvent event = {"key", bytes, 7, kNowUs, kNowUs + 10, true};
  const auto batch = std::make_shared<EventBatch>("map", death);
  batch->Add(event);
  v1::WatchExpiredResponse message;
  ASSERT_TRUE(message.ParseFromString(std::string(batch->encoded())));
  EXPECT_EQ(message.events(0).parts().SerializeAsString(), bytes);
  EXPECT_EQ(message.events(0).value(), "");
  EXPECT_EQ(message.events(0).version(), 7u);
  const ExpiredEvent back = batch->event(0);
  EXPECT_TRUE(back.parts);
  EXPECT_EQ(back.value, bytes);
  EXPECT_EQ(back.deadline_us, event.deadline_us);
  EXPECT_EQ(batch->key(0), "key");
  // A dead letter, and what a member is given with and without them.
  v1::ExpiredEvent letter;
  ASSERT_TRUE(letter.ParseFromString(
      batch->EncodeDeadLetter(0, {.group = "mail", .event_id = 9})));
  EXPECT_EQ(letter.parts().SerializeAsString(), bytes);
  EXPECT_EQ(letter.event_id(), 9u);
  for (const ValueForm form :
       {ValueForm::kWhole, ValueForm::kLeftOut, ValueForm::kOmitted}) {
    std::string delivery;
    AppendDelivery({batch, 0, 9, 2, 3}, form, &delivery);
    ASSERT_TRUE(message.ParseFromString(delivery));
    EXPECT_EQ(message.events(0).has_parts(), form == ValueForm::kWhole);
    EXPECT_EQ(message.events(0).omitted_value_bytes(),
              form == ValueForm::kOmitted ? bytes.size() : 0u);
    EXPECT_EQ(message.events(0).event_id(), 9u);
    EXPECT_EQ(message.events(0).attempt(), 2u);
    EXPECT_EQ(message.events(0).returns(), 3u);
  }
  const auto keys = Filter(batch, "k", /*keys_only=*/true);
  ASSERT_TRUE(message.ParseFromString(std::string(keys->encoded())));
  EXPECT_FALSE(message.events(0).has_parts());
}

// Changes of a map; those of one batch of each kind.
TEST(EventCodecTest, ChangesAreWrittenAsWatchChangesResponses) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(seed);
  RandomSamples random(seed);
  for (int round = 0; round < 100; ++round) {
    const auto batch =
        std::make_shared<EventBatch>("map", Death{.cause = Cause::kChanged});
    v1::WatchChangesResponse expected;
    v1::WatchChangesResponse without_values;
    for (uint64_t i = 1 + random.Number(4); i > 0; --i) {
      const Sample sample = random.Next();
      ExpiredEvent event = sample.event();
      event.change = static_cast<ChangeKind>(1 + i % 3);
      v1::ChangeEvent* const change = expected.add_changes();
      change->set_key(sample.key);
      if (event.change == ChangeKind::kPut) {
        change->set_value(sample.value);
      } else {
        event.value = {};
      }
      change->set_kind(static_cast<v1::ChangeKind>(event.change));
      change->set_version(sample.version);
      SetTime(sample.put_us, change->mutable_time());
      if (event.change != ChangeKind::kRemoved) {
        SetTime(sample.deadline_us, change->mutable_deadline());
      }
      batch->Add(event);
      const ExpiredEvent back = batch->event(batch->size() - 1);
      EXPECT_EQ(back.change, event.change);
      EXPECT_EQ(back.put_us, event.put_us);
      EXPECT_EQ(batch->key(batch->size() - 1), event.key);
      *without_values.add_changes() = *change;
      without_values.mutable_changes(without_values.changes_size() - 1)
          ->clear_value();
    }
    const auto parsed = [](absl::string_view bytes) {
      v1::WatchChangesResponse message;
      EXPECT_TRUE(message.ParseFromString(std::string(bytes)));
      return message.SerializeAsString();
    };
    EXPECT_EQ(parsed(batch->encoded()), expected.SerializeAsString());
    EXPECT_EQ(parsed(Filter(batch, "k", /*keys_only=*/true)->encoded()),
              without_values.SerializeAsString());
    EXPECT_EQ(batch->Part(0, batch->size())->encoded(), batch->encoded());
    std::string omitted;
    AppendDelivery({.batch = batch}, ValueForm::kOmitted, &omitted);
    v1::WatchChangesResponse message;
    ASSERT_TRUE(message.ParseFromString(omitted));
    EXPECT_EQ(message.changes(0).omitted_value_bytes(),
              expected.changes(0).value().size());
    EXPECT_EQ(message.changes(0).value(), "");
    EXPECT_EQ(message.changes(0).key(), expected.changes(0).key());
  }
}

TEST(EventCodecTest, WritesWhatTheGeneratedClassesWrite) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(seed);
  RandomSamples random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::string map(1 + random.Number(6) % 63, 'm');
    const Death death = random.NextDeath();
    EventBatch batch(map, death);
    v1::WatchExpiredResponse expected;
    std::vector<Sample> samples;
    for (uint64_t i = random.Number(4); i > 0; --i) {
      samples.push_back(random.Next());
      batch.Add(samples.back().event());
      AddGenerated(map, death, samples.back(), &expected);
    }
    batch.ShrinkToFit();
    ASSERT_EQ(batch.encoded(), expected.SerializeAsString());
    for (size_t i = 0; i < samples.size(); ++i) {
      const ExpiredEvent event = batch.event(static_cast<int>(i));
      ASSERT_EQ(event.key, samples[i].key);
      ASSERT_EQ(event.value, samples[i].value);
      ASSERT_EQ(event.version, samples[i].version);
      ASSERT_EQ(event.put_us, samples[i].put_us);
      ASSERT_EQ(event.deadline_us, samples[i].deadline_us);
    }
    const uint64_t lost = random.Number(64);
    const int64_t watermark_us = random.TimeUs();
    v1::WatchExpiredResponse rest;
    rest.set_namespace_(map);
    SetTime(watermark_us, rest.mutable_watermark());
    rest.set_lost(lost);
    rest.set_resume_token(std::string(random.Number(6), 't'));
    ASSERT_EQ(EncodeRest(map, watermark_us, lost, rest.resume_token()),
              rest.SerializeAsString());
    const int64_t delivered_us = random.TimeUs();
    v1::ConsumeExpiredResponse of_group;
    of_group.set_namespace_(map);
    SetTime(watermark_us, of_group.mutable_watermark());
    of_group.set_lost(lost);
    SetTime(delivered_us, of_group.mutable_delivered_watermark());
    ASSERT_EQ(EncodeRest(map, watermark_us, lost, "", delivered_us),
              of_group.SerializeAsString());
    v1::FetchExpiredResponse fetched;
    SetTime(watermark_us, fetched.mutable_watermark());
    fetched.set_lost(lost);
    SetTime(delivered_us, fetched.mutable_delivered_watermark());
    ASSERT_EQ(EncodeFetchRest(watermark_us, lost, delivered_us),
              fetched.SerializeAsString());
  }
}

TEST(EventCodecTest, NoEventTakesMoreThanItsOverhead) {
  const Death death = {kNeverUs, INT64_MIN, Cause::kRotated};
  const std::string map(63, 'm');
  const Sample largest = {std::string(kMaxKeyBytes, 'k'),
                          std::string(kMaxValueBytesLimit, 'v'), UINT64_MAX,
                          INT64_MIN, kNeverUs};
  EventBatch batch(map, death);
  batch.Add(largest.event());
  const size_t overhead =
      batch.encoded().size() - largest.key.size() - largest.value.size();
  EXPECT_LE(overhead, EventEncoding(map, death).MaxOverhead());
}

// What WatchStream::kMaxMessageBytes says of the largest message.
TEST(EventCodecTest, AFullBatchIsSmallerThanADefaultClientTakes) {
  const std::string map(63, 'm');
  EventBatch batch(map, {kNowUs, kNowUs, Cause::kExpired});
  const size_t bytes = kMaxEventBatchBytes / kMaxEventBatchEvents;
  const Sample sample = {std::string(bytes / 2, 'k'),
                         std::string(bytes / 2, 'v'), UINT64_MAX, kNowUs,
                         kNowUs};
  while (batch.HasRoomFor(sample.event())) batch.Add(sample.event());
  EXPECT_EQ(batch.size(), kMaxEventBatchEvents);
  EXPECT_LT(batch.encoded().size(), size_t{3} << 20);
}

TEST(EventCodecTest, AFilterTakesPrefixesAndLeavesValuesOut) {
  auto batch = std::make_shared<EventBatch>(
      "map", Death{kNowUs, kNowUs + 1, Cause::kEvicted});
  for (const char* key : {"user/1", "order/1", "user/2", "use"}) {
    batch->Add({key, "value", 7, kNowUs - 9, kNowUs - 8});
  }
  EXPECT_EQ(Filter(batch, "", false), batch) << "a copy without need";
  const auto users = Filter(batch, "user/", false);
  EXPECT_THAT(KeysOf(*users), ElementsAre("user/1", "user/2"));
  EXPECT_EQ(users->event(1).value, "value");
  EXPECT_EQ(users->event(1).version, 7u);
  const auto keys = Filter(batch, "", true);
  EXPECT_THAT(KeysOf(*keys), ElementsAre("user/1", "order/1", "user/2", "use"));
  EXPECT_EQ(keys->event(0).value, "");
  v1::WatchExpiredResponse message;
  ASSERT_TRUE(message.ParseFromArray(keys->encoded().data(),
                                     static_cast<int>(keys->encoded().size())));
  EXPECT_EQ(message.events(3).key(), "use");
  EXPECT_EQ(message.events(3).namespace_(), "map");
  EXPECT_EQ(message.events(3).cause(), v1::EXPIRY_CAUSE_EVICTED);
  EXPECT_EQ(Filter(batch, "none", false)->size(), 0);
}

// With the fields in the order of the generated classes.
std::string Ordered(const std::string& bytes) {
  v1::WatchExpiredResponse message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message.SerializeAsString();
}

// To a member of a group, and as a dead letter.
TEST(EventCodecTest, ADeliveryIsTheEventWithItsNumberAndAttempt) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(seed);
  RandomSamples random(seed);
  for (int round = 0; round < 300; ++round) {
    const Death death = random.NextDeath();
    auto batch = std::make_shared<EventBatch>("map", death);
    v1::WatchExpiredResponse events;
    for (int i = 0; i < 3; ++i) {
      const Sample sample = random.Next();
      batch->Add(sample.event());
      AddGenerated("map", death, sample, &events);
    }
    std::string all = "before";
    std::string keys;
    v1::WatchExpiredResponse expected;
    v1::WatchExpiredResponse expected_keys;
    for (int i : {1, 2, 0}) {
      const uint64_t event_id = random.Number(64);
      const auto attempt = static_cast<int>(random.Number(31));
      const auto returns = static_cast<int>(random.Number(31));
      v1::ExpiredEvent* const event = expected.add_events();
      *event = events.events(i);
      event->set_event_id(event_id);
      event->set_attempt(static_cast<uint32_t>(attempt));
      event->set_returns(static_cast<uint32_t>(returns));
      const Delivery delivery = {.batch = batch,
                                 .index = i,
                                 .event_id = event_id,
                                 .attempt = attempt,
                                 .returns = returns,
                                 .group_id = random.Number(40)};
      char token[kMaxDeliveryTokenBytes];
      if (attempt > 0) {
        event->set_delivery_token(
            std::string(token, WriteDeliveryToken(delivery, token)));
      }
      *expected_keys.add_events() = *event;
      expected_keys.mutable_events()->rbegin()->clear_value();
      AppendDelivery(delivery, ValueForm::kWhole, &all);
      AppendDelivery(delivery, ValueForm::kLeftOut, &keys);
      v1::ExpiredEvent letter = *event;
      letter.clear_delivery_token();
      letter.mutable_dead_letter()->set_group("mail");
      letter.mutable_dead_letter()->set_attempts(
          static_cast<uint32_t>(attempt));
      letter.mutable_dead_letter()->set_reason(
          v1::DEAD_LETTER_REASON_TIMED_OUT);
      letter.mutable_dead_letter()->mutable_time()->set_seconds(5);
      v1::ExpiredEvent encoded;
      ASSERT_TRUE(encoded.ParseFromString(batch->EncodeDeadLetter(
          i, {"mail", event_id, attempt, returns, FailureReason::kTimedOut,
              5 * kMicrosPerSecond})));
      ASSERT_EQ(encoded.SerializeAsString(), letter.SerializeAsString());
    }
    ASSERT_EQ(all.substr(0, 6), "before");
    ASSERT_EQ(Ordered(all.substr(6)), expected.SerializeAsString());
    ASSERT_EQ(Ordered(keys), expected_keys.SerializeAsString());
  }
}

// Small and large batches alternate: what is copied and what is shared must
// come in the order in which it was added.
TEST(WatchMessageTest, HasEverythingInOrder) {
  RandomSamples random(1);
  WatchMessage message;
  v1::WatchExpiredResponse expected;
  EXPECT_TRUE(message.empty());
  for (size_t value_bytes : {0u, 5'000u, 10u, 20u, 100'000u, 1'000u, 900u}) {
    const Death death = random.NextDeath();
    const Sample sample = {"key", std::string(value_bytes, 'v'), 1, 2, 3};
    auto batch = std::make_shared<EventBatch>("map", death);
    batch->Add(sample.event());
    message.Add({batch, nullptr});
    AddGenerated("map", death, sample, &expected);
  }
  EXPECT_FALSE(message.empty());
  message.watermark_us = kNowUs;
  message.lost = 77;
  const std::string bytes = ToString(message.Take("map"));
  EXPECT_TRUE(message.empty());
  expected.set_namespace_("map");
  expected.set_lost(77);
  SetTime(kNowUs, expected.mutable_watermark());
  v1::WatchExpiredResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.SerializeAsString(), expected.SerializeAsString());
}

TEST(WatchMessageTest, CopiesDeliveries) {
  auto batch = std::make_shared<EventBatch>("map", Death());
  batch->Add({"a", std::string(5'000, 'v'), 1, 2, 3});
  batch->Add({"b", "w", 1, 2, 3});
  WatchMessage message;
  message.AddDelivery({batch, 1, 8, 1}, /*keys_only=*/false);
  message.AddDelivery({batch, 0, 7, 2}, /*keys_only=*/false);
  EXPECT_FALSE(message.empty());
  batch.reset();
  v1::WatchExpiredResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(ToString(message.Take("map"))));
  ASSERT_EQ(parsed.events_size(), 2);
  EXPECT_EQ(parsed.events(0).key(), "b");
  EXPECT_EQ(parsed.events(0).event_id(), 8u);
  EXPECT_EQ(parsed.events(1).value().size(), 5'000u);
  EXPECT_EQ(parsed.events(1).attempt(), 2u);
  EXPECT_EQ(parsed.namespace_(), "map");
}

TEST(WatchMessageTest, ValueThatDoesNotFitIsLeftOutAndItsSizeTold) {
  constexpr size_t kMaxBytes = kDefaultMaxMessageBytes;
  for (const bool in_group : {false, true}) {
    for (const size_t value_bytes : {kMaxBytes - 1'000, kMaxBytes}) {
      SCOPED_TRACE(value_bytes);
      auto batch = std::make_shared<EventBatch>("map", Death());
      batch->Add({"key", std::string(value_bytes, 'v'), 1, 2, 3});
      auto after = std::make_shared<EventBatch>("map", Death());
      after->Add({"after", "small", 2, 2, 3});
      WatchMessage message(kMaxBytes);
      if (in_group) {
        message.AddDelivery({batch, 0, 8, 2}, /*keys_only=*/false);
        message.AddDelivery({after, 0, 9, 1}, /*keys_only=*/false);
      } else {
        message.Add({batch, nullptr});
        message.Add({after, nullptr});
      }
      const std::string bytes = ToString(message.Take("map"));
      EXPECT_LE(bytes.size(), kMaxBytes);
      v1::WatchExpiredResponse parsed;
      ASSERT_TRUE(parsed.ParseFromString(bytes));
      ASSERT_EQ(parsed.events_size(), 2);
      const bool fits = value_bytes < kMaxBytes;
      const v1::ExpiredEvent& event = parsed.events(0);
      EXPECT_EQ(event.value().size(), fits ? value_bytes : 0);
      EXPECT_EQ(event.omitted_value_bytes(), fits ? 0 : value_bytes);
      EXPECT_EQ(event.key(), "key");
      EXPECT_EQ(event.version(), 1u);
      EXPECT_TRUE(event.has_put_time() && event.has_deadline() &&
                  event.has_death_time());
      EXPECT_EQ(event.event_id(), in_group ? 8u : 0u);
      EXPECT_EQ(parsed.events(1).value(), "small");
      EXPECT_EQ(parsed.events(1).omitted_value_bytes(), 0u);
    }
  }
}

TEST(WatchMessageTest, SharesALargeBatchAndKeepsItUntilItIsSent) {
  auto batch = std::make_shared<EventBatch>("map", Death());
  const std::string value(5'000, 'v');
  batch->Add({"key", value, 1, 2, 3});
  const std::weak_ptr<EventBatch> kept = batch;
  WatchMessage message;
  message.Add({batch, nullptr});
  auto buffer = std::make_unique<grpc::ByteBuffer>(message.Take("map"));
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer->Dump(&slices).ok());
  EXPECT_EQ(reinterpret_cast<const char*>(slices.at(0).begin()),
            batch->encoded().data());
  slices.clear();
  batch.reset();
  EXPECT_FALSE(kept.expired());
  buffer.reset();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace timecache::server
