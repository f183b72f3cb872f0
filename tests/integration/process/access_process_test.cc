// Access rules as an operator has them: files, the server, timecachectl.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/net/certificates.h"
#include "tests/support/process.h"
#include "tests/support/server_process.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A token, and its line as timecachectl prints it.
constexpr char kToken[] = "token";
constexpr char kTokenLine[] =
    "token_sha256: "
    "[3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0]";

class AccessProcessTest : public ::testing::Test {
 protected:
  // Writes rules by which the token's holder has these verbs in "default", and
  // returns the file's path.
  std::string WriteRules(const std::string& verbs) {
    return directory_.Write(
        "access.yaml",
        absl::StrCat("principals: [{name: basket, ", kTokenLine,
                     "}]\nrules: [{principals: [basket], namespaces: "
                     "[default], verbs: [",
                     verbs, "]}]\n"));
  }
  std::string WriteConfig(const std::string& access_file) {
    return directory_.Write(
        "timecached.yaml", absl::StrCat("access: {file: ", access_file, "}\n"));
  }
  static Exit Ctl(const ServerProcess& server, std::vector<std::string> rest) {
    rest.insert(rest.begin(), {TIMECACHECTL, "--address", server.address()});
    return RunToEnd(rest);
  }

  const TemporaryDirectory directory_;
};

TEST_F(AccessProcessTest, TimecachectlShowsItsTokenAndIsHeldToTheRules) {
  const std::string config = WriteConfig(WriteRules("write"));
  const std::string token = directory_.Write("token", kToken);
  ServerProcess server({"--listen", "127.0.0.1:0", "--config", config});
  EXPECT_EQ(Ctl(server, {"put", "k", "v"}).code, 2);
  EXPECT_EQ(server.AwaitEvent("access_denied")["reason"], "NO_CREDENTIALS");
  EXPECT_EQ(Ctl(server, {"--token-file", token, "put", "k", "v"}).code, 0);
  const Exit denied = Ctl(server, {"--token-file", token, "get", "k"});
  EXPECT_EQ(denied.code, 2);
  EXPECT_THAT(denied.err, HasSubstr("read"));
  const json line = server.AwaitEvent("access_denied");
  EXPECT_EQ(line["principal"], "basket");
  EXPECT_EQ(line["verb"], "read");
  EXPECT_EQ(line["namespace"], "default");
  EXPECT_EQ(line["method"], "timecache.v1.TimeCacheService/Get");
  EXPECT_THAT(line.dump(), Not(HasSubstr("3c469e9d")));

  // A wrong file is refused, a good one taken at once.
  WriteRules("fly");
  server.process().Signal(SIGHUP);
  EXPECT_THAT(server.AwaitEvent("access_file_refused")["error"],
              HasSubstr("rules[0].verbs[0]"));
  WriteRules("write, read");
  server.process().Signal(SIGHUP);
  EXPECT_EQ(server.AwaitEvent("access_file_loaded")["rules"], 1);
  EXPECT_EQ(Ctl(server, {"--token-file", token, "get", "k"}).out, "v\n");
}

TEST_F(AccessProcessTest, WithoutItsRulesAServerDoesNotStart) {
  for (const std::string& rules :
       {directory_.Path("missing.yaml"), WriteRules("fly")}) {
    for (const char* flag : {"--log-format=json", "--check-config"}) {
      const Exit exit = RunToEnd({TIMECACHED, "--listen", "127.0.0.1:0",
                                  "--config", WriteConfig(rules), flag});
      EXPECT_EQ(exit.code, 1);
      EXPECT_EQ(exit.out, "");
      EXPECT_THAT(exit.err, HasSubstr(rules));
    }
  }
}

}  // namespace
}  // namespace timecache::test
