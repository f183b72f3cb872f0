// dump, scan and load against a server whose clock the test moves: what is
// loaded is what was dumped, byte for byte, and dies when that does.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;

constexpr int kEntries = 300;
constexpr int64_t kTtlSeconds = 100;
// Of namespaces with that ttl and 11 buckets.
constexpr absl::Duration kWidth = absl::Seconds(10);

class CliDumpTest : public ::testing::Test {
 protected:
  CliDumpTest() {
    for (const char* ns : {"a", "b", "c"}) {
      EXPECT_EQ(
          Run({"ns", "create", ns, "--ttl", "100s", "--buckets", "11"}).code,
          0);
    }
  }
  ~CliDumpTest() override { unlink(path_.c_str()); }

  Exit Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", server_.address()});
    return RunToEnd(arguments);
  }

  // Puts entries of random bytes, and of bytes that formats stumble over, with
  // random times to live and at random times.
  void Fill(const std::string& ns) {
    const std::string special("\\\t\n\r\0\"{}x ,\xff\xc3\xa4", 15);
    for (int i = 0; i < kEntries; ++i) {
      v1::PutRequest request;
      request.set_namespace_(ns);
      request.set_key(absl::StrCat(Bytes(special, 1 + random_() % 8), i));
      request.set_value(Bytes(special, random_() % 64));
      request.mutable_ttl()->set_seconds(
          static_cast<int64_t>(5 + random_() % (3 * kTtlSeconds)));
      request.mutable_ttl()->set_nanos(
          static_cast<int32_t>(1 + random_() % 999'999) * 1'000);
      grpc::ClientContext context;
      v1::PutResponse response;
      EXPECT_TRUE(server_.data()->Put(&context, request, &response).ok());
      if (i % 10 == 0) Advance(absl::Microseconds(random_() % 100'000));
    }
  }

  std::string Bytes(const std::string& special, size_t length) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) {
      byte = random_() % 2 ? special[random_() % special.size()]
                           : static_cast<char>(random_());
    }
    return bytes;
  }

  void Advance(absl::Duration by) {
    grpc::ClientContext context;
    testing::v1::AdvanceRequest request;
    testing::v1::AdvanceResponse response;
    const absl::Duration whole = absl::Trunc(by, absl::Seconds(1));
    request.mutable_by()->set_seconds(absl::ToInt64Seconds(whole));
    request.mutable_by()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(by - whole)));
    ASSERT_TRUE(clock_->Advance(&context, request, &response).ok());
    now_ = absl::FromUnixSeconds(response.now().seconds()) +
           absl::Nanoseconds(response.now().nanos());
  }

  // The dump's entries, in an order that does not depend on the namespace.
  std::vector<std::string> Entries(const std::string& ns) const {
    const Exit exit = Run({"dump", "-n", ns});
    EXPECT_EQ(exit.code, 0) << exit.err;
    std::vector<std::string> lines =
        absl::StrSplit(exit.out, '\n', absl::SkipEmpty());
    EXPECT_GE(lines.size(), 2u);
    lines.erase(lines.begin());
    lines.pop_back();
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  // A file of these bytes; more than fits into a pipe.
  const std::string& FileOf(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_;
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/timecachectl_dump.", getpid());
  ServerProcess server_{{"--listen", "127.0.0.1:0", "--virtual-clock"}};
  std::unique_ptr<testing::v1::VirtualClockService::Stub> clock_ =
      testing::v1::VirtualClockService::NewStub(server_.channel());
  absl::Time now_;
  std::mt19937 random_{17};
};

absl::Time DeadlineOf(const std::string& line) {
  absl::Time deadline;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full,
                              json::parse(line)["deadline"].get<std::string>(),
                              &deadline, &error))
      << error;
  return deadline;
}

TEST_F(CliDumpTest, ALoadedDumpIsTheSameByteForByteAndDiesWhenThatDoes) {
  Fill("a");
  const std::vector<std::string> dumped = Entries("a");
  ASSERT_EQ(dumped.size(), static_cast<size_t>(kEntries));
  const std::string file = FileOf(Run({"dump", "-n", "a"}).out);
  Advance(absl::Seconds(30));
  const absl::Time loaded_at = now_;
  const Exit loaded = Run({"load", "-n", "b", file, "--json"});
  ASSERT_EQ(loaded.code, 0) << loaded.err;

  std::vector<std::string> expected;
  std::copy_if(
      dumped.begin(), dumped.end(), std::back_inserter(expected),
      [&](const std::string& line) { return DeadlineOf(line) > loaded_at; });
  const json summary = json::parse(loaded.out, nullptr, false);
  EXPECT_EQ(summary["loaded"], expected.size());
  EXPECT_EQ(summary["expired"], dumped.size() - expected.size());
  EXPECT_GT(summary["expired"], 0);
  EXPECT_EQ(Entries("b"), expected);

  // From now on both die at the same times: never before the deadline, and
  // within a bucket's width of it.
  while (!expected.empty()) {
    Advance(absl::Seconds(random_() % 40) + absl::Microseconds(1));
    const std::vector<std::string> live = Entries("b");
    expected = Entries("a");
    expected.erase(std::remove_if(expected.begin(), expected.end(),
                                  [&](const std::string& line) {
                                    return DeadlineOf(line) <= loaded_at;
                                  }),
                   expected.end());
    EXPECT_EQ(live, expected);
    for (const std::string& line : live) {
      EXPECT_GT(DeadlineOf(line) + kWidth, now_) << line;
    }
  }
}

TEST_F(CliDumpTest, WhatScanPrintsLoadsAsTheSameBytes) {
  Fill("a");
  ASSERT_EQ(Run({"load", "-n", "b", FileOf(Run({"scan", "-n", "a"}).out)}).code,
            0);
  ASSERT_EQ(
      Run({"load", "-n", "c",
           FileOf(
               Run({"scan", "-n", "a", "--json", "--ttl", "--key-hex"}).out)})
          .code,
      0);
  EXPECT_EQ(Entries("c"), Entries("a"));
  const auto without_deadlines = [](std::vector<std::string> lines) {
    for (std::string& line : lines) {
      json object = json::parse(line);
      object.erase("deadline");
      line = object.dump();
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  EXPECT_EQ(without_deadlines(Entries("b")), without_deadlines(Entries("a")));
}

}  // namespace
}  // namespace timecache::test
