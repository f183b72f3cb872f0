// timecachectl's reading of words: addresses, and mistyped commands and flags.
#include <string>
#include <utility>
#include <vector>

#include "client/cli/address.h"
#include "client/cli/ui/suggest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/edit_distance.h"

namespace timecache::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(AddressTest, APortIsAddedWhereThereIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"host", "host:7171"},
      {"10.0.0.1", "10.0.0.1:7171"},
      {"::1", "[::1]:7171"},
      {"fe80::1%eth0", "[fe80::1%eth0]:7171"},
      {"[::1]", "[::1]:7171"},
      {"host:1", "host:1"},
      {"[2001:db8::1]:65535", "[2001:db8::1]:65535"},
      {"unix:/run/timecached", "unix:/run/timecached"},
      {"unix:relative", "unix:relative"},
      {"unix-abstract:name", "unix-abstract:name"},
      {"dns:///host:1", "dns:///host:1"},
      {"ipv4:10.0.0.1:1,10.0.0.2:1", "ipv4:10.0.0.1:1,10.0.0.2:1"},
      {"a, b:1,[::1]", "a:7171,b:1,[::1]:7171"}};
  for (const auto& [text, address] : cases) {
    EXPECT_EQ(CompleteAddress(text).value_or("refused"), address) << text;
  }
}

TEST(AddressTest, WhatIsNoAddressIsRefused) {
  for (const char* wrong :
       {"", ":7171", "host:", "host:0", "host:65536", "host:http", "host:-1",
        "host:1x", "[::1", "[::1]7171", "[]:1", "http://host",
        "https://host:443", "a,,b", "a,", "a,b:x"}) {
    EXPECT_FALSE(CompleteAddress(wrong).ok()) << wrong;
  }
}

TEST(EditDistanceTest, CountsLettersThatDiffer) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("put", "put"), 0u);
  EXPECT_EQ(EditDistance("pot", "put"), 1u);
  EXPECT_EQ(EditDistance("ptu", "put"), 1u);
  EXPECT_EQ(EditDistance("conatins", "contains"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

class SuggestTest : public ::testing::Test {
 protected:
  SuggestTest() {
    app_.add_option("-n,--namespace", value_);
    app_.add_flag("--json");
    CLI::App* put = app_.add_subcommand("put", "store");
    put->add_option("key", value_);
    put->add_option("--ttl", value_);
    app_.add_subcommand("watch", "watch");
    app_.add_subcommand("rm", "remove");
    CLI::App* ns = app_.add_subcommand("ns", "namespaces");
    ns->add_subcommand("list", "list");
    ns->add_subcommand("delete", "delete");
  }

  std::optional<std::string> Explain(const std::vector<std::string>& words) {
    return ExplainUnknownWord(app_, words);
  }

  std::string value_;
  CLI::App app_{"test", "prog"};
};

TEST_F(SuggestTest, TheNearestCommandIsMeant) {
  EXPECT_THAT(
      Explain({"pot", "a", "b"}),
      Optional(std::string("unknown command \"pot\": did you mean \"put\"?")));
  EXPECT_THAT(Explain({"--json", "-n", "x", "wacth"}),
              Optional(HasSubstr("did you mean \"watch\"?")));
  EXPECT_THAT(Explain({"ns", "lits"}),
              Optional(HasSubstr("\"ns lits\": did you mean \"ns list\"?")));
  EXPECT_THAT(Explain({"zzz"}), Optional(HasSubstr("see prog --help")));
  EXPECT_THAT(Explain({"ns", "zzz"}),
              Optional(HasSubstr("see prog ns --help")));
}

TEST_F(SuggestTest, TheNamesOfOtherProgramsAreKnown) {
  EXPECT_THAT(Explain({"set", "a"}), Optional(HasSubstr("\"put\"?")));
  EXPECT_THAT(Explain({"del", "a"}), Optional(HasSubstr("\"rm\"?")));
  EXPECT_THAT(Explain({"ns", "rm", "a"}),
              Optional(HasSubstr("\"ns delete\"?")));
  // Not one that this program does not have.
  EXPECT_THAT(Explain({"export"}), Optional(HasSubstr("--help")));
}

TEST_F(SuggestTest, TheNearestFlagIsMeant) {
  EXPECT_THAT(Explain({"put", "a", "--tt", "5s"}),
              Optional(HasSubstr("\"--tt\": did you mean \"--ttl\"?")));
  EXPECT_THAT(Explain({"put", "--namespaec=x"}),
              Optional(HasSubstr("did you mean \"--namespace\"?")));
  EXPECT_THAT(Explain({"put", "a", "-x"}), Optional(HasSubstr("after --")));
}

TEST_F(SuggestTest, WordsThatAllExistAreNotExplained) {
  EXPECT_EQ(Explain({}), std::nullopt);
  EXPECT_EQ(Explain({"put", "pot", "--ttl", "--tll", "-nx"}), std::nullopt);
  EXPECT_EQ(Explain({"put", "--", "--tll"}), std::nullopt);
  EXPECT_EQ(Explain({"put", "-"}), std::nullopt);
  EXPECT_EQ(Explain({"put", "-5"}), std::nullopt);
  EXPECT_EQ(Explain({"ns"}), std::nullopt);
}

}  // namespace
}  // namespace timecache::cli
