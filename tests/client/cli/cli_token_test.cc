// timecachectl token.
#include "gmock/gmock.h"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Of "abc", FIPS 180-2.
constexpr char kHashOfAbc[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

using CliTokenTest = CliTest;

TEST_F(CliTokenTest, MakesATokenAndSaysItsHashApart) {
  const test::Exit made = Run({"token"});
  EXPECT_EQ(made.code, 0);
  EXPECT_THAT(made.out, MatchesRegex("[-_A-Za-z0-9]{43}\n"));
  EXPECT_THAT(made.err, MatchesRegex("token_sha256: \\[[0-9a-f]{64}\\]\n"));
  const test::Exit hashed = Run({"token", "--hash"}, made.out);
  EXPECT_EQ(hashed.out, made.err);
}

TEST_F(CliTokenTest, MakesAnotherEachTime) {
  EXPECT_NE(Run({"token"}).out, Run({"token"}).out);
}

TEST_F(CliTokenTest, SaysBothInJson) {
  const nlohmann::json made = RunJson({"token"});
  const test::Exit hashed =
      Run({"token", "--hash", "--json"}, made.at("token").get<std::string>());
  EXPECT_EQ(nlohmann::json::parse(hashed.out).at("token_sha256"),
            made.at("token_sha256"));
}

TEST_F(CliTokenTest, HashesWithoutTheWhiteSpaceAround) {
  const std::string line = std::string("token_sha256: [") + kHashOfAbc + "]\n";
  EXPECT_EQ(Run({"token", "--hash"}, "abc").out, line);
  EXPECT_EQ(Run({"token", "--hash"}, " abc\r\n").out, line);
}

TEST_F(CliTokenTest, RefusesWhatNoServerTakes) {
  for (const std::string& input :
       {std::string(), std::string("\n"), std::string("two words"),
        std::string(4097, 'a')}) {
    const test::Exit result = Run({"token", "--hash"}, input);
    EXPECT_EQ(result.code, 2) << input.substr(0, 20);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("token"));
  }
}

TEST_F(CliTokenTest, TakesNoTokenAsAnArgument) {
  EXPECT_EQ(Run({"token", "secret"}).code, 2);
}

}  // namespace
}  // namespace timecache
