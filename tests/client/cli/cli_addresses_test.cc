// timecachectl with the addresses of several nodes.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;

class CliAddressesTest : public CliTest {
 protected:
  CliAddressesTest() {
    standby_.FailWith(MakeError(grpc::StatusCode::UNAVAILABLE, "not the owner",
                                v1::NOT_OWNER,
                                {{"owner_address", service_.address()}}));
  }

  test::Exit RunAtBoth(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), TIMECACHECTL);
    return test::ChildProcess(
               arguments, "",
               {{"TIMECACHED_ADDRESS",
                 standby_.address() + ", " + service_.address()}})
        .Wait();
  }

  FakeService standby_;
};

TEST_F(CliAddressesTest, CommandsGoToTheOwner) {
  EXPECT_EQ(RunAtBoth({"put", "key", "value"}).code, 0);
  EXPECT_EQ(RunAtBoth({"get", "key"}).out, "value\n");
  const test::Exit status = RunAtBoth({"status"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr(service_.address()));
  const test::Exit bench =
      RunAtBoth({"bench", "--operations", "10", "--keys", "10"});
  EXPECT_EQ(bench.code, 0) << bench.err;
}

TEST_F(CliAddressesTest, WatchFindsTheOwner) {
  standby_.AddWatch(
      {.end = MakeError(grpc::StatusCode::UNAVAILABLE, "no", v1::NOT_OWNER)});
  service_.AddWatch({.messages = {MakeBatch("default", "key", 1, 10)}});
  const test::Exit watch =
      RunAtBoth({"watch", "-n", "default", "--count", "1"});
  EXPECT_EQ(watch.code, 0) << watch.err;
  EXPECT_THAT(watch.out, HasSubstr("key"));
}

TEST_F(CliAddressesTest, WrongAddressIsNamed) {
  const test::Exit wrong =
      test::ChildProcess({TIMECACHECTL, "--address", "a:1,b:x", "get", "key"})
          .Wait();
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("b:x"));
}

}  // namespace
}  // namespace timecache
