// What Tab offers: from a tree of commands, and through bash.
#include <string>
#include <vector>

#include "client/cli/commands/completion.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using cli::Completion;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class CompleteTest : public ::testing::Test {
 protected:
  CompleteTest() {
    app_.add_option("--address", address_);
    app_.add_option("-n,--namespace", address_);
    app_.add_option("--ca", address_)->type_name("FILE");
    app_.add_flag("--json");
    CLI::App* ns = app_.add_subcommand("ns", "namespaces");
    CLI::App* create = ns->add_subcommand("create", "make one");
    create->add_option("name", address_, "The namespace");
    create->add_option("--policy", address_)
        ->check(CLI::IsMember({"reject", "evict"}));
    CLI::App* get = app_.add_subcommand("get", "read");
    get->add_option("key", address_, "The key");
    CLI::App* group = ns->add_subcommand("group-get", "show one");
    group->add_option("namespace", address_, "The namespace");
    group->add_option("group", address_, "The group");
    CLI::App* watch = app_.add_subcommand("watch", "follow");
    watch->add_option("namespaces", namespaces_, "The namespaces");
    watch->add_option("--group", address_)->type_name("GROUP");
    CLI::App* dead = app_.add_subcommand("dead", "letters");
    dead->add_option("--from", address_)->type_name("NAMESPACE");
    dead->add_option("--group", address_)->type_name("GROUP");
  }

  std::vector<std::string> Words(const std::vector<std::string>& words) {
    using Names = std::vector<std::string>;
    const Completion completion =
        cli::Complete(app_, words,
                      {.namespaces =
                           [this](const Names& flags) {
                             flags_ = flags;
                             return Names{"default", "dead", "orders"};
                           },
                       .groups =
                           [this](const Names& flags, const Names& namespaces) {
                             flags_ = flags;
                             groups_of_ = namespaces;
                             return Names{"billing", "mail"};
                           }});
    files_ = completion.files;
    std::vector<std::string> offered;
    for (const auto& each : completion.candidates) offered.push_back(each.word);
    return offered;
  }

  std::string address_;
  CLI::App app_{"test", "test"};
  std::vector<std::string> namespaces_;
  std::vector<std::string> flags_;
  std::vector<std::string> groups_of_;  // Asked for last.
  bool files_ = false;
};

TEST_F(CompleteTest, CommandsAreOfferedAndFollowed) {
  EXPECT_THAT(Words({""}), UnorderedElementsAre("ns", "get", "watch", "dead"));
  EXPECT_THAT(Words({"g"}), ElementsAre("get"));
  EXPECT_THAT(Words({"ns", ""}), ElementsAre("create", "group-get"));
  EXPECT_THAT(Words({"--json", "ns", "cr"}), ElementsAre("create"));
  EXPECT_THAT(Words({"nothing", "x"}), IsEmpty());
  EXPECT_THAT(Words({}), UnorderedElementsAre("ns", "get", "watch", "dead"));
}

TEST_F(CompleteTest, FlagsAreThoseOfTheCommandAndOfTheProgram) {
  EXPECT_THAT(Words({"ns", "create", "--"}),
              AllOf(Contains("--policy"), Contains("--address"),
                    Contains("--json"), Contains("--help")));
  EXPECT_THAT(Words({"get", "--"}), Not(Contains("--policy")));
  EXPECT_THAT(Words({"get", "--js"}), ElementsAre("--json"));
}

TEST_F(CompleteTest, ValuesAreThoseThatTheFlagTakes) {
  EXPECT_THAT(Words({"ns", "create", "--policy", ""}),
              ElementsAre("reject", "evict"));
  EXPECT_THAT(Words({"ns", "create", "--policy", "e"}), ElementsAre("evict"));
  EXPECT_THAT(Words({"--ca", ""}), IsEmpty());
  EXPECT_TRUE(files_);
  EXPECT_THAT(Words({"--address", ""}), IsEmpty());
  EXPECT_FALSE(files_);
}

TEST_F(CompleteTest, ADirectoryIsOneOfTheFiles) {
  app_.add_subcommand("check", "read all")
      ->add_option("directory", address_)
      ->type_name("DIR");
  EXPECT_THAT(Words({"check", ""}), IsEmpty());
  EXPECT_TRUE(files_);
  EXPECT_THAT(Words({"check", "a", ""}), IsEmpty());
  EXPECT_FALSE(files_);
}

TEST_F(CompleteTest, NamespacesComeFromTheServerThatTheLineNames) {
  EXPECT_THAT(Words({"--address", "host:1", "get", "--namespace", "de"}),
              ElementsAre("default", "dead"));
  EXPECT_THAT(flags_, ElementsAre("--address", "host:1"));
  EXPECT_THAT(Words({"ns", "create", "o"}), ElementsAre("orders"));
  // Only the first argument is one.
  EXPECT_THAT(Words({"ns", "create", "orders", ""}), IsEmpty());
  EXPECT_THAT(Words({"get", ""}), IsEmpty());
}

TEST_F(CompleteTest, GroupsAreThoseOfTheNamespacesOnTheLine) {
  EXPECT_THAT(Words({"watch", "orders", "--group", "b"}),
              ElementsAre("billing"));
  EXPECT_THAT(groups_of_, ElementsAre("orders"));
  EXPECT_THAT(Words({"watch", "orders", "dead", "--group", ""}),
              ElementsAre("billing", "mail"));
  EXPECT_THAT(groups_of_, ElementsAre("orders", "dead"));
  EXPECT_THAT(Words({"-n", "orders", "watch", "--group", "m"}),
              ElementsAre("mail"));
  EXPECT_THAT(groups_of_, IsEmpty());
  EXPECT_THAT(flags_, ElementsAre("--namespace", "orders"));
  EXPECT_THAT(Words({"ns", "group-get", "orders", "m"}), ElementsAre("mail"));
  EXPECT_THAT(groups_of_, ElementsAre("orders"));
  EXPECT_THAT(
      Words({"-n", "failed", "dead", "--from", "orders", "--group", ""}),
      ElementsAre("billing", "mail"));
  EXPECT_THAT(groups_of_, ElementsAre("orders"));
}

TEST_F(CompleteTest, AnArgumentThatTakesManyIsOfferedAgain) {
  EXPECT_THAT(Words({"watch", "orders", "de"}), ElementsAre("default", "dead"));
}

using CompletionTest = CliTest;

TEST_F(CompletionTest, AllCommandsOfTheProgramAreThere) {
  const test::Exit result = Run({"completion", "bash"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("complete -F _timecachectl timecachectl"));
  const test::Exit words =
      test::ChildProcess({TIMECACHECTL, "__complete", ""}).Wait();
  EXPECT_THAT(words.out, AllOf(HasSubstr("put\t"), HasSubstr("top\t"),
                               HasSubstr("ns\t"), HasSubstr("completion\t")));
  EXPECT_THAT(words.out, AllOf(HasSubstr("help\t"), HasSubstr("version\t")));
  EXPECT_THAT(
      test::ChildProcess({TIMECACHECTL, "__complete", "help", "ns", "cr"})
          .Wait()
          .out,
      HasSubstr("create\t"));
  EXPECT_EQ(Run({"completion", "csh"}).code, 2);
}

// As readline calls it.
TEST_F(CompletionTest, BashOffersTheNamespacesOfTheServer) {
  ASSERT_TRUE(client_.CreateNamespace("sessions").ok());
  const std::string line = std::string(TIMECACHECTL) + " --address " +
                           service_.address() + " get -n se";
  const test::Exit result =
      test::ChildProcess({"/bin/bash", "-c",
                          "source <(\"$1\" completion bash); COMP_LINE=$2; "
                          "COMP_POINT=${#2}; _timecachectl; printf '%s\\n' "
                          "\"${COMPREPLY[@]}\"",
                          "bash", TIMECACHECTL, line})
          .Wait();
  EXPECT_EQ(result.out, "sessions\n") << result.err;
}

TEST_F(CompletionTest, GroupsComeFromTheServer) {
  ASSERT_TRUE(client_.CreateNamespace("sessions").ok());
  for (const char* ns : {"default", "sessions"}) {
    ASSERT_TRUE(client_.In(ns).CreateGroup(std::string("of-") + ns).ok());
  }
  const auto complete = [this](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {TIMECACHECTL, "__complete", "--address", service_.address()});
    return test::ChildProcess(words).Wait().out;
  };
  EXPECT_EQ(complete({"watch", "sessions", "--group", ""}),
            "of-sessions\tgroup\n");
  EXPECT_EQ(complete({"watch", "--group", ""}), "of-default\tgroup\n");
  EXPECT_EQ(complete({"ns", "group-delete", "sessions", "of"}),
            "of-sessions\tgroup\n");
}

TEST_F(CompletionTest, WithoutAServerItOffersNothingAndSaysNothing) {
  const test::Exit result =
      test::ChildProcess({TIMECACHECTL, "__complete", "--address",
                          "127.0.0.1:1", "get", "-n", ""})
          .Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
}

TEST_F(CompletionTest, TheManualHasEveryCommandAndItsFlags) {
  const test::Exit result = test::ChildProcess({TIMECACHECTL, "__man"}).Wait();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr(".TH TIMECACHECTL 1"), HasSubstr(".SS ns create"),
                    HasSubstr(".SS help"), HasSubstr(".SS version"),
                    HasSubstr("\\-\\-buckets"), HasSubstr(".SH EXAMPLES")));
}

}  // namespace
}  // namespace timecache
