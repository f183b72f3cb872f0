#include "server/edge/access_file.h"

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/net/certificates.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;

// Rules in which this principal has the token "token".
std::string RulesOf(const std::string& principal) {
  const TokenHash hash = HashToken("token");
  return absl::StrCat(
      "principals: [{name: ", principal, ", token_sha256: [",
      absl::BytesToHexString(absl::string_view(
          reinterpret_cast<const char*>(hash.data()), hash.size())),
      "]}]\n");
}

std::string WhoIsIt(const Access& access) {
  Credentials credentials;
  credentials.authorizations = {"Bearer token"};
  const auto caller = access.Authenticate(credentials);
  return caller.ok() ? (*caller)->name() : "nobody";
}

class AccessFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) {
    return directory_.Write("access.yaml", text);
  }

  test::TemporaryDirectory directory_;
  FileWatch watch_;
};

TEST_F(AccessFileTest, FollowsTheFile) {
  const auto file = AccessFile::Open(Write(RulesOf("first")), &watch_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(WhoIsIt(**file), "first");
  const uint64_t generation = (*file)->generation();
  int changes = 0;
  (*file)->SetListener([&] {
    // What the listener sees is in force.
    EXPECT_EQ(WhoIsIt(**file), "second");
    EXPECT_NE((*file)->generation(), generation);
    ++changes;
  });
  Write(RulesOf("second"));
  watch_.Check();
  EXPECT_EQ(changes, 1);
  watch_.Check();
  EXPECT_EQ(changes, 1);
  (*file)->SetListener(nullptr);
  Write(RulesOf("third"));
  watch_.Check();
  EXPECT_EQ(WhoIsIt(**file), "third");
  EXPECT_EQ(changes, 1);
  EXPECT_TRUE((*file)->state().ok);
  EXPECT_EQ((*file)->state().succeeded, 3u);
}

TEST_F(AccessFileTest, AWrongFileLeavesTheOldRules) {
  const std::string path = Write(RulesOf("first"));
  const auto file = AccessFile::Open(path, &watch_);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Time loaded_at = (*file)->state().loaded_at;
  int changes = 0;
  (*file)->SetListener([&] { ++changes; });
  Write("principals: [{name: \"no name\"}]");
  watch_.Check();
  EXPECT_FALSE((*file)->state().ok);
  // Being written.
  Write("");
  watch_.Check();
  std::filesystem::remove(path);
  watch_.Check();
  EXPECT_EQ(WhoIsIt(**file), "first");
  EXPECT_EQ(changes, 0);
  EXPECT_FALSE((*file)->state().ok);
  EXPECT_EQ((*file)->state().failed, 3u);
  EXPECT_EQ((*file)->state().loaded_at, loaded_at);
  Write(RulesOf("second"));
  watch_.Check();
  EXPECT_EQ(WhoIsIt(**file), "second");
  EXPECT_TRUE((*file)->state().ok);
}

TEST_F(AccessFileTest, CallersOutliveTheRulesThatTheyCameFrom) {
  const auto file = AccessFile::Open(Write(RulesOf("first")), &watch_);
  ASSERT_TRUE(file.ok()) << file.status();
  Credentials credentials;
  credentials.authorizations = {"Bearer token"};
  const auto caller = (*file)->Authenticate(credentials);
  ASSERT_TRUE(caller.ok());
  Write(RulesOf("second"));
  watch_.Check();
  EXPECT_EQ((*caller)->name(), "first");
  EXPECT_EQ((*caller)->VerbsIn("default"), Verbs());
}

TEST_F(AccessFileTest, AMissingOrWrongFileAtTheStartIsAnError) {
  const auto missing = AccessFile::Open(directory_.Path("none"), &watch_);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none"));
  const auto wrong = AccessFile::Open(Write("rules: 1"), &watch_);
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("access.yaml:1"));
}

TEST_F(AccessFileTest, MoreFilesThanTheWatchTakesIsAnError) {
  for (size_t i = 0; i < FileWatch::kMaxFiles; ++i) {
    ASSERT_TRUE(watch_
                    .Add({directory_.Path(absl::StrCat(i))}, absl::Hours(1),
                         [](const FileWatch::Contents&) {})
                    .ok());
  }
  const auto file = AccessFile::Open(Write(RulesOf("first")), &watch_);
  EXPECT_EQ(file.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace timecache::server
