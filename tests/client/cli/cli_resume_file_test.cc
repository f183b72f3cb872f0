// What timecachectl keeps of a watch over the end of its process.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/resume_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::cli {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using Tokens = std::map<std::string, std::string>;

class ResumeFileTest : public ::testing::Test {
 protected:
  std::string Content() const {
    std::ifstream file(path_);
    return (std::ostringstream() << file.rdbuf()).str();
  }
  void SetContent(const std::string& text) const {
    std::ofstream(path_) << text;
  }
  // Opens, and writes a token for each of the namespaces.
  void Fill(const std::vector<std::string>& namespaces) const {
    auto file = ResumeFile::Open(path_, namespaces);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const std::string& ns : namespaces) {
      ASSERT_TRUE(file->Record(ns, "token of " + ns, kTime).ok());
    }
  }
  std::string OpenError(const std::vector<std::string>& namespaces) const {
    return std::string(ResumeFile::Open(path_, namespaces).status().message());
  }

  static constexpr absl::Time kTime = absl::FromUnixMicros(1'500'000);
  const server::TemporaryDirectory root_;
  const std::string directory_ = root_.path();
  std::string path_ = directory_ + "/file";
};

TEST_F(ResumeFileTest, OneThatIsNotThereIsMadeAndHoldsNoPlace) {
  const auto file = ResumeFile::Open(path_, {"a", "b"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tokens(), Tokens());
  EXPECT_EQ(file->watermark("a"), absl::InfinitePast());
  EXPECT_NE(Content(), "");
}

TEST_F(ResumeFileTest, WhatWasRecordedIsReadBack) {
  const std::string token = "\0\xff token\n"s;
  {
    auto file = ResumeFile::Open(path_, {"a", "b"});
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Record("a", "earlier", absl::UnixEpoch()).ok());
    ASSERT_TRUE(file->Record("a", token, kTime).ok());
    EXPECT_EQ(file->tokens(), (Tokens{{"a", token}}));
  }
  const auto file = ResumeFile::Open(path_, {"b", "a"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tokens(), (Tokens{{"a", token}}));
  EXPECT_EQ(file->watermark("a"), kTime);
  EXPECT_EQ(file->watermark("b"), absl::InfinitePast());
}

TEST_F(ResumeFileTest, CanBeReadByPeople) {
  Fill({"orders"});
  EXPECT_EQ(nlohmann::json::parse(Content(), nullptr, false),
            nlohmann::json::parse(R"({
                "format": "timecachectl watch --resume-file",
                "version": 1,
                "namespaces": [{"name": "orders",
                                "watermark": "1970-01-01T00:00:01.5Z",
                                "resume_token": "dG9rZW4gb2Ygb3JkZXJz"}]})"));
}

TEST_F(ResumeFileTest, WhatAWriteThatWasKilledLeftIsNoHarm) {
  Fill({"a"});
  std::ofstream(path_ + ".tmp") << std::string(100'000, '{');
  {
    auto file = ResumeFile::Open(path_, {"a"});
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->tokens(), (Tokens{{"a", "token of a"}}));
    ASSERT_TRUE(file->Record("a", "next", kTime).ok());
  }
  EXPECT_EQ(ResumeFile::Open(path_, {"a"})->tokens(), (Tokens{{"a", "next"}}));
}

TEST_F(ResumeFileTest, DamagedIsRefusedAndLeftAsItIs) {
  Fill({"a"});
  const std::string good = Content();
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::pair<std::string, const char*> cases[] = {
      {"", "it is empty"},
      {good.substr(0, good.size() / 2), "not a JSON object"},
      {"[]", "not a JSON object"},
      {with("watch", "wait"), "\"format\""},
      {with("1,", "2,"), "\"version\""},
      {with("\"namespaces\"", "\"spaces\""), "no list of \"namespaces\""},
      {with("\"name\"", "\"game\""), "has no name"},
      {with("dG9r", "!!!!"), "resume_token or the watermark of a"},
      {with("resume_token", "token"), "resume_token or the watermark of a"},
      {with("1970", "then"), "resume_token or the watermark of a"},
      {std::string(ResumeFile::kMaxFileBytes + 1, ' '), "too large"}};
  for (const auto& [text, why] : cases) {
    SetContent(text);
    const std::string error = OpenError({"a"});
    EXPECT_THAT(error,
                HasSubstr(absl::StrCat("resume file ", path_, " is damaged")));
    EXPECT_THAT(error, HasSubstr(why));
    EXPECT_THAT(error, HasSubstr("remove it to start again"));
    EXPECT_EQ(Content(), text);
  }
}

TEST_F(ResumeFileTest, OfOtherNamespacesIsRefusedAndLeftAsItIs) {
  Fill({"a", "b"});
  const std::string content = Content();
  for (const std::vector<std::string>& others :
       {std::vector<std::string>{"a"}, {"a", "c"}, {"a", "b", "c"}}) {
    EXPECT_THAT(OpenError(others), HasSubstr("is of a watch of a b, this one"));
  }
  EXPECT_EQ(Content(), content);
}

TEST_F(ResumeFileTest, WithoutAPlaceItIsAnybodys) {
  EXPECT_TRUE(ResumeFile::Open(path_, {"mistyped"}).ok());
  Fill({"a"});
  EXPECT_THAT(OpenError({"b"}), HasSubstr("is of a watch of a, this one"));
}

TEST_F(ResumeFileTest, IsOneWatchsAtATime) {
  auto file = ResumeFile::Open(path_, {"a"});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(OpenError({"a"}), HasSubstr("in use by another timecachectl"));
  ASSERT_TRUE(file->Record("a", "token", kTime).ok());
  EXPECT_THAT(OpenError({"a"}), HasSubstr("in use by another timecachectl"));
  EXPECT_TRUE(file->Record("a", "next", kTime).ok());
}

TEST_F(ResumeFileTest, ThatSomebodyElseReplacesIsTheirs) {
  auto file = ResumeFile::Open(path_, {"a"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(path_ + ".theirs") << "theirs";
  std::filesystem::rename(path_ + ".theirs", path_);
  const absl::Status status = file->Record("a", "token", kTime);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(Content(), "theirs");
}

TEST_F(ResumeFileTest, ThatSomebodyRemovesIsWrittenAgain) {
  auto file = ResumeFile::Open(path_, {"a"});
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::remove(path_);
  EXPECT_TRUE(file->Record("a", "token", kTime).ok());
  EXPECT_THAT(Content(), HasSubstr("watermark"));
}

TEST_F(ResumeFileTest, ThatCannotBeWrittenSaysSoAtOnce) {
  path_ = directory_ + "/absent/file";
  EXPECT_THAT(OpenError({"a"}), HasSubstr("No such file or directory"));
  path_ = directory_;
  EXPECT_THAT(OpenError({"a"}), HasSubstr("is not a regular file"));
  path_ = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(OpenError({"a"}), HasSubstr("is not a regular file"));
}

TEST_F(ResumeFileTest, ALinkToItStaysOne) {
  const std::string real = path_;
  path_ = directory_ + "/link";
  Fill({"a"});
  std::filesystem::rename(path_, real);
  std::filesystem::create_symlink("file", path_);
  Fill({"a"});
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_FALSE(std::filesystem::is_symlink(real));
  EXPECT_EQ(ResumeFile::Open(real, {"a"})->tokens(),
            (Tokens{{"a", "token of a"}}));
}

}  // namespace
}  // namespace timecache::cli
