// dump, scan and load against a server whose clock the test moves: what is
// loaded is what was dumped, byte for byte, and dies when that does.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/effort.h"
#include "tests/support/net/certificates.h"
#include "tests/support/process.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

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
  // random times to live and at random times, some with a traceparent.
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
      if (i % 3 == 0) {
        request.set_traceparent(
            absl::StrFormat("00-%032x-%016x-01", i + 1, i + 1));
      }
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
  EXPECT_EQ(std::count_if(dumped.begin(), dumped.end(),
                          [](const std::string& line) {
                            return json::parse(line).contains("traceparent");
                          }),
            kEntries / 3);
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
  const auto without_times = [](std::vector<std::string> lines) {
    for (std::string& line : lines) {
      json object = json::parse(line);
      object.erase("deadline");
      object.erase("own_ttl");
      object.erase("traceparent");
      line = object.dump();
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  EXPECT_EQ(without_times(Entries("b")), without_times(Entries("a")));
}

TEST_F(CliDumpTest, ABinaryDumpIsTheSameByteForByte) {
  Fill("a");
  const Exit dumped =
      Run({"dump", "-n", "a", "--format", "binary", path_, "--json"});
  ASSERT_EQ(dumped.code, 0) << dumped.err;
  EXPECT_EQ(json::parse(dumped.out)["entries"], kEntries);
  EXPECT_EQ(access((path_ + ".partial").c_str(), F_OK), -1);
  const Exit loaded = Run({"load", "-n", "b", path_, "--json"});
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_EQ(json::parse(loaded.out)["loaded"], kEntries);
  EXPECT_EQ(Entries("b"), Entries("a"));
  // Through a pipe, too.
  const Exit piped =
      RunToEnd({"/bin/sh", "-c",
                absl::StrCat(TIMECACHECTL, " --address ", server_.address(),
                             " dump -n a --format binary | ", TIMECACHECTL,
                             " --address ", server_.address(), " load -n c")});
  ASSERT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(Entries("c"), Entries("a"));
}

TEST_F(CliDumpTest, ABinaryDumpThatIsCutOrDamagedIsSaidToBe) {
  Fill("a");
  const std::string mark = "a value that is there once";
  ASSERT_EQ(Run({"put", "-n", "a", "marked", mark}).code, 0);
  const std::string dump = Run({"dump", "-n", "a", "--format", "binary"}).out;
  const size_t middle = dump.size() / 2;
  std::string damaged = dump;
  // A damaged length may look like a dump that is cut off.
  const size_t marked = dump.find(mark);
  ASSERT_NE(marked, dump.npos);
  damaged[marked] ^= 1;
  const auto load = [&](const std::string& bytes) {
    const Exit exit = Run({"load", "-n", "b", FileOf(bytes), "--json"});
    EXPECT_EQ(exit.code, 2);
    EXPECT_EQ(json::parse(exit.out)["complete"], false);
    return exit.err;
  };
  EXPECT_THAT(load(damaged), HasSubstr("damaged"));
  // Within a record, within the length of one, and between two.
  for (const size_t cut : {middle, middle + 1, middle + 17, dump.size() - 3}) {
    EXPECT_THAT(load(dump.substr(0, cut)), HasSubstr("cut off"));
  }
  EXPECT_EQ(Run({"load", "-n", "c", FileOf(dump)}).code, 0);
  EXPECT_EQ(Entries("c"), Entries("a"));
}

TEST_F(CliDumpTest, TheLargestValuesPassInBothForms) {
  for (const char* ns : {"big", "json", "binary"}) {
    ASSERT_EQ(
        Run({"ns", "create", ns, "--ttl", "100s", "--max-value-bytes", "16MiB"})
            .code,
        0);
  }
  // Of bytes that JSON has in base64, as they are, and in six each; under a
  // sanitizer only the first, a quarter as large.
  constexpr int kValues = test::Rounds(3);
  constexpr size_t kBytes = test::Rounds(16 << 20);
  for (int i = 0; i < kValues; ++i) {
    v1::PutRequest request;
    request.set_namespace_("big");
    request.set_key(absl::StrCat("key", i));
    request.set_value(std::string(kBytes, static_cast<char>(240 - i * 120)));
    grpc::ClientContext context;
    v1::PutResponse response;
    ASSERT_TRUE(server_.data()->Put(&context, request, &response).ok());
  }
  for (const char* form : {"json", "binary"}) {
    ASSERT_EQ(Run({"dump", "-n", "big", "--format", form, path_}).code, 0);
    const Exit loaded = Run({"load", "-n", form, path_, "--json"});
    ASSERT_EQ(loaded.code, 0) << loaded.err;
    EXPECT_EQ(json::parse(loaded.out)["loaded"], kValues);
    EXPECT_EQ(Entries(form), Entries("big"));
  }
}

// As a first load of a small server: none of it may be taken for an attack.
TEST(LoadTest, ManyLargeValuesFitIntoAnEmptyServer) {
  constexpr int kCount = Rounds(1'000);
  constexpr size_t kBytes = 60'000;
  const TemporaryDirectory directory;
  std::string lines;
  const std::string value(kBytes, 'v');
  for (int i = 0; i < kCount; ++i) {
    const json line = {{"key", absl::StrCat("key", i)}, {"value", value}};
    absl::StrAppend(&lines, line.dump(), "\n");
  }
  const std::string file = directory.Write("lines", lines);
  const std::string config =
      directory.Write("config.yaml", "limits: {max_memory_bytes: 256MiB}\n");
  const ServerProcess server(
      {"--listen", "127.0.0.1:0", "--virtual-clock", "--config", config});
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", server.address()});
    return RunToEnd(arguments);
  };
  const Exit load = run({"load", "-n", "default", file});
  EXPECT_EQ(load.code, 0) << load.err;
  const Exit size = run({"size", "-n", "default", "--json"});
  EXPECT_EQ(json::parse(size.out)["entries"], kCount);
}

TEST_F(CliDumpTest, ALifeThatIsTooLongForANamespaceNamesItsRecord) {
  Fill("a");
  ASSERT_EQ(
      Run({"ns", "create", "short", "--ttl", "10s", "--max-ttl", "10s"}).code,
      0);
  const std::string dump = Run({"dump", "-n", "a", "--format", "binary"}).out;
  const Exit loaded = Run({"load", "-n", "short", FileOf(dump), "--json"});
  EXPECT_EQ(loaded.code, 2);
  EXPECT_THAT(loaded.err,
              AllOf(HasSubstr("record "), HasSubstr("ttl"), HasSubstr("10s")));
  EXPECT_GT(json::parse(loaded.out)["bad_lines"], 0);
}

}  // namespace
}  // namespace timecache::test
