// The parts of `timecachectl bench`: histogram, messages, responses, tally.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/bench/bench_message.h"
#include "client/cli/bench/bench_report.h"
#include "client/cli/bench/bench_sender.h"
#include "client/cli/bench/bench_tally.h"
#include "client/cli/bench/latency_histogram.h"
#include "client/cpp/src/data/convert.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_script.h"
#include "timecache/status.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LatencyHistogramTest, ShortOnesAreExact) {
  LatencyHistogram histogram;
  for (uint64_t ns = 1; ns <= 100; ++ns) histogram.Add(ns);
  EXPECT_EQ(histogram.PercentileNs(0), 1u);
  EXPECT_EQ(histogram.PercentileNs(1), 1u);
  EXPECT_EQ(histogram.PercentileNs(50), 50u);
  EXPECT_EQ(histogram.PercentileNs(99), 99u);
  EXPECT_EQ(histogram.PercentileNs(99.9), 100u);
  EXPECT_EQ(histogram.PercentileNs(100), 100u);
  EXPECT_EQ(histogram.max_ns(), 100u);
  EXPECT_EQ(histogram.mean_ns(), 50.5);
}

TEST(LatencyHistogramTest, RankOfAThousandthIsNotRoundedUp) {
  LatencyHistogram histogram;
  for (int i = 0; i < 999; ++i) histogram.Add(10);
  histogram.Add(60);
  EXPECT_EQ(histogram.PercentileNs(99.9), 10u);
  EXPECT_EQ(histogram.PercentileNs(99.91), 60u);
}

TEST(LatencyHistogramTest, ErrorIsLessThanASixtyFourth) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t ns = random() >> (22 + random() % 42);
    LatencyHistogram histogram;
    histogram.Add(ns);
    histogram.Add(LatencyHistogram::kMaxNs);
    const uint64_t shown = histogram.PercentileNs(50);
    EXPECT_GE(shown, ns);
    EXPECT_LE((shown - ns) * 64, ns) << ns;
  }
}

TEST(LatencyHistogramTest, EndsOfBucketsAreTheirOwn) {
  for (const uint64_t ns :
       {uint64_t{63}, uint64_t{64}, uint64_t{127}, uint64_t{128}, uint64_t{129},
        uint64_t{1} << 41, LatencyHistogram::kMaxNs}) {
    LatencyHistogram histogram;
    histogram.Add(ns);
    EXPECT_EQ(histogram.PercentileNs(100), ns);
  }
  LatencyHistogram longest;
  longest.Add(UINT64_MAX);
  EXPECT_EQ(longest.max_ns(), LatencyHistogram::kMaxNs);
}

TEST(LatencyHistogramTest, MergeIsTheSameAsAddingToOne) {
  std::mt19937_64 random(8);
  LatencyHistogram one, other, both;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t ns = random() % 1'000'000;
    (i % 3 == 0 ? one : other).Add(ns);
    both.Add(ns);
  }
  one.Merge(other);
  EXPECT_EQ(one.count(), both.count());
  EXPECT_EQ(one.max_ns(), both.max_ns());
  EXPECT_NEAR(one.mean_ns(), both.mean_ns(), 1e-6);
  for (const double percent : {0.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    EXPECT_EQ(one.PercentileNs(percent), both.PercentileNs(percent));
  }
  one.Clear();
  EXPECT_EQ(one.count(), 0u);
}

TEST(BenchKeysTest, InOrderOrAtRandomWithinTheirNumber) {
  BenchKeys in_order(3, true, 0);
  EXPECT_EQ(in_order.Next(), 0u);
  EXPECT_EQ(in_order.Next(), 1u);
  EXPECT_EQ(in_order.Next(), 2u);
  EXPECT_EQ(in_order.Next(), 0u);
  BenchKeys at_random(100, false, 7);
  std::set<uint64_t> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(at_random.Next());
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(*seen.rbegin(), 99u);
}

TEST(BenchMessageTest, DigitsOfAnyWidth) {
  for (const size_t width : {1, 2, 3, 4, 7, 12}) {
    for (const uint64_t number :
         {0ull, 7ull, 10ull, 99ull, 123'456ull, 987'654'321'012ull}) {
      std::string digits(width + 2, '#');
      WriteDigits(number, width, &digits[1]);
      std::string expected = absl::StrCat(std::string(12, '0'), number);
      expected = expected.substr(expected.size() - width);
      EXPECT_EQ(digits, absl::StrCat("#", expected, "#"));
    }
  }
}

TEST(BenchMessageTest, MixIsEvenAndExact) {
  EXPECT_THAT(MixPeriod({100}), ElementsAre(BenchKind::kPut));
  const std::vector<BenchKind> fifth = MixPeriod({80, 20});
  ASSERT_EQ(fifth.size(), 5u);
  EXPECT_EQ(std::ranges::count(fifth, BenchKind::kGet), 1);
  const std::vector<BenchKind> all = MixPeriod({31, 29, 20, 13, 7});
  ASSERT_EQ(all.size(), 100u);
  EXPECT_EQ(std::ranges::count(all, BenchKind::kPut), 31);
  EXPECT_EQ(std::ranges::count(all, BenchKind::kTouch), 7);
  // No half has more than its share, but for one.
  EXPECT_NEAR(std::count(all.begin(), all.begin() + 50, BenchKind::kPut), 15.5,
              1);
}

// A message parsed by the generated class, and its keys as numbers.
struct Parsed {
  v1::ExecuteRequest request;
  std::vector<std::string> keys;
};

Parsed Parse(const BenchMessage& message) {
  Parsed parsed;
  EXPECT_TRUE(parsed.request.ParseFromString(message.bytes()));
  for (const v1::Operation& operation : parsed.request.operations()) {
    switch (operation.request_case()) {
      case v1::Operation::kGet:
        parsed.keys.push_back(operation.get().key());
        break;
      case v1::Operation::kRemove:
        parsed.keys.push_back(operation.remove().key());
        break;
      case v1::Operation::kContains:
        parsed.keys.push_back(operation.contains().key());
        break;
      case v1::Operation::kTouch:
        parsed.keys.push_back(operation.touch().key());
        break;
      default:
        parsed.keys.push_back(operation.put().key());
    }
  }
  return parsed;
}

TEST(BenchMessageTest, IsWhatTheGeneratedClassesMake) {
  for (const size_t key_bytes : {8, 15, 16, 20, 300}) {
    const BenchOptions options = {.ns = "sessions",
                                  .keys = 5000,
                                  .key_bytes = key_bytes,
                                  .value_bytes = 200,
                                  .ttl = absl::Milliseconds(1500)};
    BenchMessage message(options,
                         {BenchKind::kPut, BenchKind::kGet, BenchKind::kRemove,
                          BenchKind::kContains, BenchKind::kTouch},
                         true);
    BenchKeys keys(5000, true, 4997);
    message.SetKeys(keys);
    message.SetKeys(keys);  // 2, 3, 4, 5, 6.
    const Parsed parsed = Parse(message);
    EXPECT_EQ(parsed.request.namespace_(), "sessions");
    EXPECT_EQ(message.operations(), 5u);
    v1::ExecuteRequest expected;
    expected.set_namespace_("sessions");
    const size_t digits = std::min<size_t>(12, key_bytes - 4);
    const auto key = [&](int number) {
      std::string text =
          absl::StrCat("key:", std::string(digits - 1, '0'), number);
      text.resize(key_bytes, 'x');
      return text;
    };
    v1::PutRequest* put = expected.add_operations()->mutable_put();
    put->set_key(key(2));
    put->set_value(std::string(200, 'v'));
    *put->mutable_ttl() = ToProto(absl::Milliseconds(1500));
    expected.add_operations()->mutable_get()->set_key(key(3));
    expected.add_operations()->mutable_remove()->set_key(key(4));
    expected.add_operations()->mutable_contains()->set_key(key(5));
    v1::TouchRequest* touch = expected.add_operations()->mutable_touch();
    touch->set_key(key(6));
    *touch->mutable_ttl() = ToProto(absl::Milliseconds(1500));
    EXPECT_EQ(message.bytes(), expected.SerializeAsString());
  }
}

TEST(BenchMessageTest, PartsOfAGatherComeInTurn) {
  const BenchOptions options = {
      .mix_percent = {0, 0, 0, 0, 0, 0, 0, 100}, .value_bytes = 3, .batch = 1};
  BenchKeys keys(1000, true, 42);
  BenchMessages messages(options, /*depth=*/1);
  std::vector<std::string> parts;
  for (int i = 0; i < 4; ++i) {
    v1::GatherRequest request;
    ASSERT_TRUE(request.ParseFromString(messages.Next(keys).bytes()));
    EXPECT_EQ(request.key(), absl::StrCat("key:00000000004", 2 + i));
    EXPECT_EQ(request.value(), "vvv");
    EXPECT_EQ(request.expected_parts(), kBenchParts);
    parts.push_back(request.part());
  }
  EXPECT_THAT(parts, ElementsAre("0", "1", "2", "0"));
}

TEST(BenchMessageTest, UnaryIsTheRequestOfItsCall) {
  const BenchOptions options = {.value_bytes = 3};
  BenchKeys keys(1000, true, 42);
  BenchMessage put(options, {BenchKind::kPut}, false);
  put.SetKeys(keys);
  v1::PutRequest expected;
  expected.set_namespace_("default");
  expected.set_key("key:000000000042");
  expected.set_value("vvv");
  EXPECT_EQ(put.bytes(), expected.SerializeAsString());
  EXPECT_EQ(put.method(), "/timecache.v1.TimeCacheService/Put");
  BenchMessage touch(options, {BenchKind::kTouch}, false);
  touch.SetKeys(keys);
  v1::TouchRequest touched;
  ASSERT_TRUE(touched.ParseFromString(touch.bytes()));
  EXPECT_EQ(touched.key(), "key:000000000043");
}

TEST(BenchMessageTest, BufferHasTheBytesOfNow) {
  BenchMessage message({}, {BenchKind::kGet, BenchKind::kGet}, true);
  BenchKeys keys(1000, true, 7);
  message.SetKeys(keys);
  grpc::Slice sent;
  ASSERT_TRUE(message.buffer().DumpToSingleSlice(&sent).ok());
  EXPECT_EQ(std::string(sent.begin(), sent.end()), message.bytes());
  EXPECT_THAT(message.bytes(), HasSubstr("key:000000000008"));
}

TEST(BenchMessageTest, MessagesTakeTurnsAndKeepTheMixOverall) {
  const BenchOptions options = {
      .mix_percent = {75, 25}, .value_bytes = 1, .batch = 6, .depth = 3};
  BenchMessages messages(options, options.depth);
  BenchKeys keys(1000, true, 0);
  std::set<const BenchMessage*> distinct;
  int gets = 0;
  for (int i = 0; i < 4; ++i) {
    BenchMessage& message = messages.Next(keys);
    distinct.insert(&message);
    const Parsed parsed = Parse(message);
    for (const v1::Operation& operation : parsed.request.operations()) {
      gets += operation.has_get();
    }
  }
  EXPECT_EQ(gets, 6);  // Of 24, though no message can have a quarter of 6.
  EXPECT_GE(distinct.size(), options.depth);
  EXPECT_LE(distinct.size() * 6 * 17, BenchMessages::BytesOfAll(options));
}

v1::ExecuteResponse Response() {
  v1::ExecuteResponse response;
  response.add_results()->mutable_put()->set_version(1);
  response.add_results()->mutable_put()->set_version(UINT64_MAX);
  v1::Entry* entry = response.add_results()->mutable_get()->mutable_entry();
  entry->set_value(std::string(70'000, 'v'));
  entry->set_version(3);
  response.add_results()->mutable_get();
  response.add_results()->mutable_remove()->set_removed(true);
  response.add_results()->mutable_remove();
  response.add_results()->mutable_contains()->set_contains(true);
  response.add_results()->mutable_contains();
  response.add_results()->mutable_touch()->set_touched(true);
  response.add_results()->mutable_touch();
  return response;
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Keeps the errors of operations.
class Listener final : public BenchListener {
 public:
  void Answered(BenchSender&, int64_t, const BenchCounts&) override {}
  void OperationFailed(const absl::Status& error) override {
    errors.push_back(error);
  }
  void Failed(const absl::Status&) override {}

  std::vector<absl::Status> errors;
};

TEST(BenchResultsTest, CountsResultsHitsMissesAndErrors) {
  v1::ExecuteResponse response = Response();
  const grpc::Status error = MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                       "max_bytes: full", v1::MAX_BYTES);
  ASSERT_TRUE(response.add_results()->mutable_error()->ParseFromString(
      error.error_details()));
  Listener listener;
  for (size_t n = 1; n <= 2; ++n) {
    grpc::ByteBuffer buffer = Buffer(response.SerializeAsString());
    const auto counts = ReadResults(buffer, 11, listener);
    ASSERT_TRUE(counts.ok());
    EXPECT_EQ(counts->results, 11u);
    EXPECT_EQ(counts->hits, 4u);
    EXPECT_EQ(counts->misses, 4u);
    EXPECT_EQ(counts->errors, 1u);
    ASSERT_EQ(listener.errors.size(), n);
  }
  EXPECT_EQ(listener.errors[0].message(), "max_bytes: full");
  EXPECT_EQ(ReasonName(listener.errors[0]), Name(v1::MAX_BYTES));
}

TEST(BenchResultsTest, WrongNumberOfResultsIsAnError) {
  Listener listener;
  grpc::ByteBuffer buffer = Buffer(Response().SerializeAsString());
  const absl::Status status = ReadResults(buffer, 100, listener).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("to 100 operations has 10 results"));
  grpc::ByteBuffer junk = Buffer("junk");
  EXPECT_EQ(ReadResults(junk, 1, listener).status().code(),
            absl::StatusCode::kInternal);
}

TEST(BenchTallyTest, WritesALineForEachSecond) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(),
                                                       std::fclose);
  BenchTally tally(file.get());
  tally.Start(5 * kSecond);
  tally.Add(5 * kSecond + 10, 10, {.results = 3, .hits = 1, .misses = 1});
  tally.Add(8 * kSecond + 1, 2 * kSecond, {.results = 4});
  tally.AddError(absl::InvalidArgumentError("first"));
  tally.AddError(absl::InvalidArgumentError("second"));
  tally.Finish(8 * kSecond + kSecond / 2);
  EXPECT_EQ(tally.counts().results, 7u);
  EXPECT_EQ(tally.latencies().count(), 2u);
  EXPECT_EQ(tally.latencies().max_ns(), 2u * kSecond);
  EXPECT_EQ(tally.errors().at("INVALID_ARGUMENT"), 2u);
  EXPECT_EQ(tally.first_error().message(), "first");
  EXPECT_NEAR(tally.seconds(), 3, 1e-6);  // To the last answer.
  EXPECT_EQ(tally.timeline_error(), 0);
  std::rewind(file.get());
  std::vector<Json> lines;
  char line[1000];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    lines.push_back(Json::parse(line));
  }
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["operations"], 3);
  EXPECT_EQ(lines[1]["operations"], 0);  // A second without an answer.
  EXPECT_EQ(lines[2]["operations"], 0);
  EXPECT_EQ(lines[3]["second"], 4);
  EXPECT_EQ(lines[3]["operations"], 4);
  EXPECT_EQ(lines[3]["seconds"], 0.5);
  EXPECT_EQ(lines[3]["max_us"], 2e6);
}

}  // namespace
}  // namespace timecache::cli
