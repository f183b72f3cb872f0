#include "server/peer/field_coder.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/store/traceparent.h"
#include "server/peer/event_fields.h"
#include "server/peer/frame_queue.h"
#include "server/peer/peer_answer.h"

namespace timecache::server {
namespace {

template <typename T>
T Again(const T& value) {
  FieldWriter writer;
  writer(value);
  const std::string bytes = writer.Take();
  FieldReader reader(bytes);
  T read = {};
  reader(read);
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.done());
  return read;
}

// Two versions of one struct.
struct Older {
  int64_t first = 1;
};
struct Newer {
  int64_t first = 1;
  std::string second = "default";
};
template <typename Coder, Is<Older> T>
void CodeFields(Coder& code, T& value) {
  code(value.first);
}
template <typename Coder, Is<Newer> T>
void CodeFields(Coder& code, T& value) {
  code(value.first, value.second);
}

TEST(FieldCoderTest,
     FieldsOfANewerNodeAreSkippedAndThoseOfAnOlderOneKeepDefaults) {
  FieldWriter newer;
  newer(Newer{7, "new"}, 42);
  const std::string from_newer = newer.Take();
  FieldReader reader(from_newer);
  Older older;
  int behind = 0;
  reader(older, behind);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(older.first, 7);
  EXPECT_EQ(behind, 42);

  FieldWriter old;
  old(Older{8}, 43);
  const std::string from_older = old.Take();
  FieldReader again(from_older);
  Newer read;
  again(read, behind);
  EXPECT_TRUE(again.ok());
  EXPECT_EQ(read.first, 8);
  EXPECT_EQ(read.second, "default");
  EXPECT_EQ(behind, 43);
}

TEST(FieldCoderTest, BytesThatEndInTheMiddleAreNotOk) {
  FieldWriter writer;
  writer(std::vector<std::string>{"first", "second"}, Newer());
  const std::string bytes = writer.Take();
  for (size_t size = 1; size < bytes.size(); ++size) {
    FieldReader reader(absl::string_view(bytes).substr(0, size));
    std::vector<std::string> texts;
    Newer value;
    reader(texts, value);
    // Whole fields may be missing, and nothing else.
    EXPECT_TRUE(!reader.ok() || texts.size() == 2) << size;
  }
}

TEST(FieldCoderTest, AnErrorTravelsWhole) {
  absl::Status status = ErrorWithReason(absl::StatusCode::kResourceExhausted,
                                        Reason::kMaxOperationRate, "too many",
                                        {{"namespace", "orders"}});
  status = WithRetryAfter(std::move(status), 1'234);
  EXPECT_EQ(Again(status), status);
  EXPECT_EQ(RetryAfterUsOf(Again(status)), 1'234);
  EXPECT_EQ(Again(InvalidField("ttl", "must be positive")),
            InvalidField("ttl", "must be positive"));
  EXPECT_EQ(Again(absl::OkStatus()), absl::OkStatus());
}

TEST(FieldCoderTest, AnOperationTravelsWithItsGathering) {
  const std::string trace =
      "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("b", 0, {"c", "b", "a"}).ok());
  gathering.keep_first = true;
  gathering.remember_us = 77;
  Operation gather = Operation::Gather("key", &gathering, "value").WithTtl(5);
  gather.SetId("id");
  gather.SetTrace(trace);
  Operation put = Operation::Put("k", "v").ExpiringAt(99, /*past_too=*/true);
  put.condition = Condition::kIfVersion;
  put.if_version = 1'000'000;
  put.return_previous = true;
  Operation combine = Operation::Combine("n", Combination::kXor, -3);
  combine.initial = INT64_MIN;
  combine.remove_if_zero = true;

  FieldWriter writer;
  WriteOperations({gather, put, combine}, &writer);
  const std::string bytes = writer.Take();
  FieldReader reader(bytes);
  ReadOperations read;
  ASSERT_TRUE(read.Read(&reader));
  ASSERT_EQ(read.operations.size(), 3u);
  const Operation& first = read.operations[0];
  EXPECT_EQ(first.kind, OpKind::kGather);
  EXPECT_EQ(first.key, "key");
  EXPECT_EQ(first.value, "value");
  EXPECT_EQ(first.id(), "id");
  EXPECT_EQ(first.trace(), trace);
  EXPECT_TRUE(first.has_ttl);
  EXPECT_EQ(first.ttl_us, 5);
  ASSERT_NE(first.gathering, nullptr);
  EXPECT_EQ(first.gathering->part(), "b");
  EXPECT_EQ(first.gathering->expectation(), gathering.expectation());
  EXPECT_EQ(first.gathering->expected(), 3u);
  EXPECT_TRUE(first.gathering->keep_first);
  EXPECT_EQ(first.gathering->remember_us, 77);
  const Operation& second = read.operations[1];
  EXPECT_EQ(second.condition, Condition::kIfVersion);
  EXPECT_EQ(second.if_version, 1'000'000u);
  EXPECT_TRUE(second.return_previous);
  EXPECT_TRUE(second.has_expire_at);
  EXPECT_TRUE(second.allow_past);
  EXPECT_EQ(second.expire_at_us, 99);
  EXPECT_EQ(second.gathering, nullptr);
  const Operation& third = read.operations[2];
  EXPECT_EQ(third.combination, Combination::kXor);
  EXPECT_EQ(third.operand, -3);
  EXPECT_EQ(third.initial, INT64_MIN);
  EXPECT_TRUE(third.remove_if_zero);
}

TEST(FieldCoderTest, ResultsTravelWithoutWhatIsNotSet) {
  std::vector<Result> results(4);
  results[0].status = InvalidField("key", "must not be empty");
  results[1].found = true;
  results[1].version = 1'000'000;
  results[1].number = -7;
  results[2].removed = true;
  results[2].has_entry = true;
  results[2].entry = {.value = std::string(200, 'v'),
                      .version = 3,
                      .put_us = 500,
                      .deadline_us = 400,
                      .parts = true,
                      .create_us = 100,
                      .own_ttl_us = 9};
  results[3].duplicate = true;
  results[3].has_entry = true;
  results[3].entry = {.value = "v",
                      .version = 4,
                      .put_us = 500,
                      .deadline_us = INT64_MAX,
                      .create_us = 500};
  FieldWriter writer;
  WriteResults(results, &writer);
  const std::string bytes = writer.Take();
  FieldReader reader(bytes);
  // What the memory was used for before.
  std::vector<Result> read(4, results[2]);
  for (Result& result : read) {
    result.Clear();
    reader(result);
  }
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(read[0].status, results[0].status);
  EXPECT_TRUE(read[1].found);
  EXPECT_EQ(read[1].version, 1'000'000u);
  EXPECT_EQ(read[1].number, -7);
  EXPECT_FALSE(read[1].has_entry);
  EXPECT_TRUE(read[2].removed);
  EXPECT_TRUE(read[2].has_entry);
  EXPECT_EQ(read[2].entry.value, std::string(200, 'v'));
  EXPECT_EQ(read[2].entry.deadline_us, 400);
  EXPECT_TRUE(read[2].entry.parts);
  EXPECT_EQ(read[2].entry.create_us, 100);
  EXPECT_EQ(read[2].entry.own_ttl_us, 9);
  EXPECT_TRUE(read[3].duplicate);
  EXPECT_EQ(read[3].entry.value, "v");
  EXPECT_EQ(read[3].entry.put_us, 500);
  EXPECT_EQ(read[3].entry.deadline_us, INT64_MAX);
  EXPECT_FALSE(read[3].entry.parts);
  EXPECT_EQ(read[3].entry.create_us, 500);
  EXPECT_EQ(read[3].entry.own_ttl_us, 0);
}

TEST(FieldCoderTest, OptionsTravelByName) {
  NamespaceOptions options;
  options.ttl_us = 1'500;
  options.sliding = true;
  options.limit_policy = LimitPolicy::kEvictOldest;
  options.dead_letter_namespace = "letters";
  options.durability = NamespaceDurability::kReplicated;
  options.change_retention_us = 9;
  const NamespaceOptions read = Again(options);
  EXPECT_EQ(WrittenOptions(read), WrittenOptions(options));
  EXPECT_EQ(read.dead_letter_namespace, "letters");
  EXPECT_NE(WrittenOptions(read), WrittenOptions(NamespaceOptions()));

  GroupOptions group;
  group.key_prefix = "user/";
  group.retry_delays_us = {1, 2, 3};
  group.paused = true;
  EXPECT_EQ(WrittenOptions(Again(group)), WrittenOptions(group));
  EXPECT_EQ(Again(group).retry_delays_us, group.retry_delays_us);
}

TEST(FieldCoderTest, EventsTravelAsTheyAreEncoded) {
  EventBatch batch("orders", {.death_us = 1'000'001,
                              .published_us = 1'000'500,
                              .cause = Cause::kEvicted});
  for (const char* key : {"user/1", "user/22", "user/333"}) {
    ExpiredEvent event;
    event.key = key;
    event.value = "some value";
    event.version = 77;
    event.put_us = 12;
    event.deadline_us = 1'000'000;
    event.create_us = 11;
    event.own_ttl_us = 5;
    batch.Add(event);
  }
  const auto read =
      EventBatch::FromEncoded("orders", batch.death(), batch.encoded());
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->encoded(), batch.encoded());
  EXPECT_EQ(read->size(), 3);
  EXPECT_EQ(read->common_prefix(), batch.common_prefix());
  EXPECT_EQ(read->payload_bytes(), batch.payload_bytes());
  EXPECT_EQ(read->event(1).key, "user/22");
  EXPECT_EQ(read->event(2).value, "some value");
  EXPECT_EQ(read->cause(), Cause::kEvicted);

  EXPECT_EQ(EventBatch::FromEncoded("others", batch.death(), batch.encoded()),
            nullptr);
  EXPECT_EQ(EventBatch::FromEncoded("orders", batch.death(),
                                    batch.encoded().substr(0, 20)),
            nullptr);
}

TEST(FieldCoderTest, DeliveriesOfOneBatchShareOneAgain) {
  const auto batch = std::make_shared<EventBatch>(
      "orders", Death{.death_us = 5, .published_us = 6});
  for (const char* key : {"a", "b", "c"}) {
    ExpiredEvent event;
    event.key = key;
    batch->Add(event);
  }
  PeerChunk chunk;
  for (const int index : {2, 0}) {
    Delivery delivery;
    delivery.batch = batch;
    delivery.index = index;
    delivery.event_id = 100 + static_cast<uint64_t>(index);
    delivery.attempt = 3;
    delivery.group_id = 9;
    chunk.chunk.deliveries.push_back(delivery);
  }
  chunk.chunk.lost = 4;
  chunk.chunk.lost_events = {{4, "a"}};
  chunk.chunk.points = {{1, 2, 3}, {4, 5, 6}};
  chunk.chunk.closed = true;
  chunk.why_closed = absl::NotFoundError("gone");
  FieldWriter writer;
  WriteChunk(chunk, &writer);
  const std::string bytes = writer.Take();
  FieldReader reader(bytes);
  PeerChunk read;
  ASSERT_TRUE(ReadChunk("orders", &reader, &read));
  ASSERT_EQ(read.chunk.deliveries.size(), 2u);
  EXPECT_EQ(read.chunk.deliveries[0].event().key, "c");
  EXPECT_EQ(read.chunk.deliveries[1].event().key, "a");
  EXPECT_EQ(read.chunk.deliveries[0].batch, read.chunk.deliveries[1].batch);
  EXPECT_EQ(read.chunk.deliveries[1].event_id, 100u);
  EXPECT_EQ(read.chunk.deliveries[0].attempt, 3);
  EXPECT_EQ(read.chunk.deliveries[0].group_id, 9u);
  EXPECT_EQ(read.chunk.lost, 4u);
  EXPECT_EQ(read.chunk.lost_events.at(0).prefix, "a");
  ASSERT_EQ(read.chunk.points.size(), 2u);
  EXPECT_EQ(read.chunk.points[0].next_event, 2u);
  EXPECT_EQ(read.chunk.points[1].watermark_us, 6);
  EXPECT_TRUE(read.chunk.closed);
  EXPECT_EQ(read.why_closed, absl::NotFoundError("gone"));
}

TEST(FrameQueueTest, ALargeFrameIsPartedAndSmallOnesShareAMessage) {
  FrameQueue queue;
  const auto body = [](size_t bytes, char c) {
    return std::make_shared<const std::string>(bytes, c);
  };
  queue.Push({1, peer::v1::FRAME_KIND_CALL, body(3, 'a')});
  queue.Push({2, peer::v1::FRAME_KIND_CALL, body(5 << 20, 'b')});
  queue.Push({3, peer::v1::FRAME_KIND_CALL, body(7, 'c')});
  queue.Push({4, peer::v1::FRAME_KIND_CLOSE, nullptr});
  FrameJoiner joiner;
  std::vector<std::pair<uint64_t, size_t>> got;
  int messages = 0;
  while (!queue.empty()) {
    PeerFrames message;
    queue.Take(&message);
    ++messages;
    size_t bytes = 0;
    for (peer::v1::Frame& frame : message) {
      bytes += frame.ByteSizeLong();
      if (joiner.Join(&frame) == FrameJoiner::Joined::kWhole) {
        got.emplace_back(frame.id(), frame.body().size());
      }
    }
    EXPECT_LE(bytes, kMaxPeerMessageBytes + 100);
  }
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(messages, 6);
  const std::vector<std::pair<uint64_t, size_t>> want = {
      {1, 3}, {2, 5 << 20}, {3, 7}, {4, 0}};
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace timecache::server
