#include "server/base/address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;

std::string AddressProblem(absl::string_view address) {
  return std::string(ValidateAddress(address).message());
}

TEST(AddressTest, AddressesOfEveryKindAreTaken) {
  for (const char* address :
       {"127.0.0.1:7171", "localhost:0", "0.0.0.0:65535", "[::]:1",
        "[::1]:7171", "unix:/run/timecached.sock"}) {
    EXPECT_EQ(AddressProblem(address), "") << address;
  }
  EXPECT_EQ(
      AddressProblem("unix:/" + std::string(kMaxSocketPathBytes - 1, 'x')), "");
}

TEST(AddressTest, WrongAddressesAreExplained) {
  EXPECT_THAT(AddressProblem("localhost"),
              HasSubstr("has no port: write host:port"));
  EXPECT_THAT(AddressProblem(""), HasSubstr("has no port: write host:port"));
  EXPECT_THAT(AddressProblem(":7171"), HasSubstr("has no host"));
  EXPECT_THAT(AddressProblem("::1:7171"),
              HasSubstr("without brackets: write [::1]:7171"));
  EXPECT_THAT(AddressProblem("unix:run/x"),
              HasSubstr("no absolute path after unix:"));
  EXPECT_THAT(AddressProblem("unix:"),
              HasSubstr("no absolute path after unix:"));
  EXPECT_THAT(AddressProblem("unix:/" + std::string(kMaxSocketPathBytes, 'x')),
              HasSubstr("a path of more than 107 bytes"));
  for (const char* address :
       {"a:", "a:-1", "a:65536", "a:http", "a:+1", "a:1x"}) {
    EXPECT_THAT(AddressProblem(address), HasSubstr("no port from 0 to 65535"))
        << address;
  }
  for (const char* address : {"a b:1", "a:1\n", "a\t:1", "\xff:1"}) {
    EXPECT_THAT(AddressProblem(address),
                HasSubstr("a character that no address has"));
  }
  EXPECT_THAT(AddressProblem("unix:/a\nb"), HasSubstr(R"("unix:/a\nb" has)"));
}

TEST(AddressTest, LocalAddressesAreThoseOfThisMachine) {
  for (const char* address : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1",
                              "[::1]:1", "unix:/run/x"}) {
    EXPECT_TRUE(IsLocalAddress(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "[::]:1", "128.0.0.1:1", "127.0.0.1.example:1",
        "localhost.example:1", "[::ffff:127.0.0.1]:1", "127.1:1"}) {
    EXPECT_FALSE(IsLocalAddress(address)) << address;
  }
}

}  // namespace
}  // namespace timecache
