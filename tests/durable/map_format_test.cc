// Durable namespaces that earlier versions kept come back for ever, with
// everything in them. What is in testdata is never written again; what made it
// is write_map_testdata.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "server/log/local/journal_tools.h"
#include "tests/durable/map_testdata.h"
#include "tests/support/journal/temporary_directory.h"

namespace timecache::server {
namespace {

class MapFormatTest : public ::testing::TestWithParam<std::string> {
 protected:
  MapFormatTest() {
    std::filesystem::copy(source_, journal_,
                          std::filesystem::copy_options::recursive);
    store_.UseDirectory(journal_);
  }
  std::string Expected() const {
    std::ifstream file(source_ + ".txt");
    EXPECT_TRUE(file.is_open()) << source_;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Open() {
    const absl::Status opened = store_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    store_.clock().AdvanceTo(store_.report().last_us);
    store_.AdvanceBy(0);
  }

  const std::string source_ = std::string(JOURNAL_TESTDATA "/") + GetParam();
  TemporaryDirectory directory_;
  const std::string journal_ = directory_.path() + "/journal";
  DurableStore store_;
};

TEST_P(MapFormatTest, AllOfItComesBack) {
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(DescribeStore(&store_), Expected());
}

TEST_P(MapFormatTest, AllOfItComesBackAfterACrash) {
  std::filesystem::remove(journal_ + "/END");
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(DescribeStore(&store_), Expected());
}

TEST_P(MapFormatTest, ItGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const Result before =
      store_.Execute("sessions", Operation::Get("second-long-lived"));
  ASSERT_TRUE(before.found);
  const Result put = store_.Put("sessions", "second-long-lived", "new");
  ASSERT_TRUE(put.status.ok()) << put.status;
  EXPECT_GT(put.version, before.entry.version);
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(store_.Get("sessions", "second-long-lived"), "new");
  EXPECT_EQ(store_.Get("sessions", "second-empty"), "");
}

TEST_P(MapFormatTest, ItIsChecked) {
  const auto report = CheckJournal(FileSystem::Posix(), journal_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->intact) << report->ToString();
}

INSTANTIATE_TEST_SUITE_P(Version1, MapFormatTest,
                         ::testing::Values("v1_maps", "v1_maps_trimmed",
                                           "v1_maps_changed",
                                           "v1_maps_retained"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace timecache::server
