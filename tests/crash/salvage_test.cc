// What timecachectl copies out of a damaged journal, a server starts with.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;

TEST(SalvageProcessTest, AServerStartsWithWhatIsLeft) {
  const server::TemporaryDirectory directory;
  const std::string damaged = directory.path() + "/journal";
  const std::string salvaged = directory.path() + "/salvaged";
  const auto serve = [](const std::string& journal) {
    return std::make_unique<ServerProcess>(std::vector<std::string>{
        "--listen", "127.0.0.1:0", "--virtual-clock", "--journal", journal});
  };
  constexpr int kKeys = 300;
  {
    const auto server = serve(damaged);
    NamespaceOptions options;
    options.ttl = absl::Hours(1);
    options.durability = Durability::kSync;
    const Client client(server->address());
    ASSERT_TRUE(client.CreateNamespace("a", options).ok());
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(
          client.In("a").Put(absl::StrCat(i), absl::StrCat("v", i)).ok());
    }
  }
  const std::string segment = damaged + "/00000000000000000001";
  const auto bytes =
      static_cast<std::streamoff>(std::filesystem::file_size(segment));
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  for (const int part : {2, 3, 4}) {
    file.seekp(bytes * part / 5);
    file.write("damage", 6);
  }
  file.close();
  const Exit refused =
      RunToEnd({TIMECACHED, "--listen", "127.0.0.1:0", "--journal", damaged});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("journal salvage"));
  const Exit exit =
      RunToEnd({TIMECACHECTL, "journal", "salvage", damaged, salvaged});
  ASSERT_EQ(exit.code, 0) << exit.err;

  const auto server = serve(salvaged);
  const Client client = Client(server->address()).In("a");
  int there = 0;
  for (int i = 0; i < kKeys; ++i) {
    const auto entry = client.Get(absl::StrCat(i));
    ASSERT_TRUE(entry.ok()) << entry.status();
    if (!entry->has_value()) continue;
    EXPECT_EQ((*entry)->value, absl::StrCat("v", i));
    ++there;
  }
  EXPECT_GE(there, kKeys - 10);
  EXPECT_LT(there, kKeys);
}

}  // namespace
}  // namespace timecache::test
