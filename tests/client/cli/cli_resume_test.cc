// timecachectl watch --resume-file, against a stand-in for the server.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A batch with a token.
v1::WatchExpiredResponse MakeResumable(const std::string& key, int death_unix_s,
                                       int watermark_unix_s,
                                       const std::string& token) {
  v1::WatchExpiredResponse batch =
      MakeBatch("default", key, death_unix_s, watermark_unix_s);
  batch.set_resume_token(token);
  return batch;
}

// A token that is no token.
grpc::Status MalformedToken() {
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field("resume_tokens");
  violation->set_description("has one that is malformed");
  google::rpc::Status status;
  status.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  status.set_message("resume_tokens has one that is malformed");
  status.add_details()->PackFrom(bad);
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, status.message(),
                      status.SerializeAsString());
}

grpc::Status LogChanged() {
  return MakeError(grpc::StatusCode::FAILED_PRECONDITION, "another log",
                   v1::LOG_CHANGED, {{"namespace", "default"}});
}

class CliResumeTest : public CliTest {
 protected:
  std::string Content() const {
    std::ifstream file(path_);
    return (std::ostringstream() << file.rdbuf()).str();
  }
  std::string Watermark() const {
    const json file = json::parse(Content(), nullptr, false);
    return file["namespaces"][0].value("watermark", "");
  }
  std::vector<std::string> Watch(std::vector<std::string> more) const {
    more.insert(more.begin(), {"watch", "--resume-file", path_});
    return more;
  }
  // Of the n-th call.
  std::vector<std::string> Tokens(size_t n) const {
    const auto request = service_.Requests<v1::WatchExpiredRequest>().at(n);
    return {request.resume_tokens().begin(), request.resume_tokens().end()};
  }

  const server::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/file";
};

TEST_F(CliResumeTest, GoesOnWhereItStopped) {
  service_.AddWatch({.messages = {MakeResumable("one", 40, 41, "first"),
                                  MakeResumable("", 0, 50, "second")},
                     .hang = true});
  service_.AddWatch(
      {.messages = {MakeResumable("two", 60, 61, "third")}, .hang = true});
  const test::Exit first =
      Run(Watch({"--from-earliest", "--until-watermark", "50"}));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("one"));
  EXPECT_EQ(Watermark(), "1970-01-01T00:00:50Z");
  const test::Exit second =
      Run(Watch({"--from-earliest", "--until-watermark", "61"}));
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("two"));
  EXPECT_EQ(second.err, "");
  EXPECT_THAT(Tokens(0), ElementsAre());
  EXPECT_THAT(Tokens(1), ElementsAre("second"));
}

TEST_F(CliResumeTest, WhatCouldNotBePrintedIsNotRecorded) {
  v1::WatchExpiredResponse second = MakeResumable("two", 50, 51, "second");
  // More than a pipe holds: it is not printed before somebody reads.
  second.mutable_events(0)->set_value(std::string(1 << 20, 'x'));
  service_.AddWatch(
      {.messages = {MakeResumable("one", 40, 41, "first"), second},
       .hang = true});
  test::ChildProcess process(Argv(Watch({})));
  EXPECT_THAT(process.ReadLine(), HasSubstr("one"));
  process.CloseOutput();
  EXPECT_EQ(process.Wait().code, 0);
  EXPECT_EQ(Watermark(), "1970-01-01T00:00:41Z");
}

TEST_F(CliResumeTest, CountEndsWithItsBatchSoThatNothingComesTwice) {
  v1::WatchExpiredResponse batch = MakeResumable("one", 40, 41, "first");
  *batch.add_events() = MakeBatch("default", "two", 40, 41).events(0);
  service_.AddWatch({.messages = {batch}, .hang = true});
  const test::Exit result = Run(Watch({"--count", "1"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("one"));
  EXPECT_THAT(result.out, HasSubstr("two"));
  EXPECT_EQ(Watermark(), "1970-01-01T00:00:41Z");
}

TEST_F(CliResumeTest, EachNamespaceHasItsOwnPlace) {
  const auto both = [](const std::string& suffix) {
    WatchScript script = {.hang = true};
    for (const std::string ns : {"a", "b"}) {
      script.messages.push_back(MakeBatch(ns, ns, 40, 41));
      script.messages.back().set_resume_token(ns + suffix);
    }
    return script;
  };
  service_.AddWatch(both("1"));
  service_.AddWatch(both("2"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Run(Watch({"b", "a", "--count", "2"})).code, 0);
  }
  EXPECT_THAT(Tokens(1), ::testing::UnorderedElementsAre("a1", "b1"));
}

TEST_F(CliResumeTest, TokenThatTheServerCannotReadIsDamageOfTheFile) {
  service_.AddWatch(
      {.messages = {MakeResumable("one", 40, 41, "first")}, .hang = true});
  service_.AddWatch({.end = MalformedToken()});
  EXPECT_EQ(Run(Watch({"--count", "1"})).code, 0);
  const std::string content = Content();
  const test::Exit result = Run(Watch({}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("is damaged (has one that is malformed)"));
  EXPECT_EQ(Content(), content);
}

TEST_F(CliResumeTest, AnotherLogIsReportedAndReadFromItsBeginning) {
  service_.AddWatch(
      {.messages = {MakeResumable("one", 40, 41, "first")}, .hang = true});
  service_.AddWatch({.end = LogChanged()});
  service_.AddWatch(
      {.messages = {MakeResumable("two", 60, 61, "second")}, .hang = true});
  EXPECT_EQ(Run(Watch({"--count", "1"})).code, 0);
  const test::Exit result = Run(Watch({"--count", "1", "--json"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out.substr(0, result.out.find('\n'))),
            json({{"type", "log_changed"},
                  {"namespace", "default"},
                  {"missed_after", "1970-01-01T00:00:41Z"}}));
  EXPECT_THAT(result.out, HasSubstr("\"two\""));
  EXPECT_THAT(result.err, HasSubstr("default: the log has changed"));
  EXPECT_THAT(result.err,
              HasSubstr("of deaths after 1970-01-01T00:00:41.000Z, are lost"));
  EXPECT_THAT(Tokens(1), ElementsAre("first"));
  EXPECT_THAT(Tokens(2), ElementsAre());
  EXPECT_EQ(service_.Requests<v1::WatchExpiredRequest>().at(2).start(),
            v1::WATCH_START_EARLIEST);
  EXPECT_EQ(Watermark(), "1970-01-01T00:01:01Z");
}

TEST_F(CliResumeTest, AnotherLogIsAnErrorWithFailOnLoss) {
  service_.AddWatch(
      {.messages = {MakeResumable("one", 40, 41, "first")}, .hang = true});
  service_.AddWatch({.end = LogChanged()});
  EXPECT_EQ(Run(Watch({"--count", "1"})).code, 0);
  const std::string content = Content();
  const test::Exit result = Run(Watch({"--fail-on-loss"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("default: another log"));
  EXPECT_EQ(Content(), content);
}

}  // namespace
}  // namespace timecache
