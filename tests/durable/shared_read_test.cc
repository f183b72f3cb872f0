#include "server/durable/shared_read.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/journal/journal_harness.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class SharedReadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    for (int i = 0; i < 400; ++i) {
      const uint32_t partition = i % 3;
      ASSERT_TRUE(
          harness_
              .AppendNow(partition, absl::StrCat(i, std::string(20'000, 'v')))
              .ok());
    }
    all_ = ReadAll(harness_.journal()).partitions;
  }
  // Two parts, of which the first has two partitions.
  static std::vector<SharedRead::Partitions> Parts() {
    return {{{0, 0}, {2, 5}}, {{1, 0}}};
  }

  JournalHarness harness_{/*partitions=*/3, /*segment_bytes=*/1 << 20};
  std::vector<RecordsByPosition> all_;
};

TEST_F(SharedReadTest, EachPartGetsItsRecordsInOrder) {
  SharedRead read(&harness_.journal(), Parts());
  std::vector<RecordsByPosition> got(3);
  std::vector<std::thread> threads;
  for (const size_t part : {0, 1}) {
    threads.emplace_back([&, part] {
      const absl::Status status = read.Read(
          part,
          [&](uint32_t partition, uint64_t position, absl::string_view record) {
            RecordsByPosition& to = got[partition];
            EXPECT_TRUE(to.empty() || to.rbegin()->first + 1 == position);
            to.emplace(position, std::string(record));
            return absl::OkStatus();
          });
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  EXPECT_TRUE(read.Run().ok());
  for (std::thread& thread : threads) thread.join();
  all_[2].erase(all_[2].begin(), all_[2].find(5));
  EXPECT_EQ(got, all_);
}

TEST_F(SharedReadTest, NoPartIsFarAheadOfAnother) {
  SharedRead read(&harness_.journal(), Parts());
  std::atomic<bool> may_go_on = false;
  std::atomic<uint64_t> fast_bytes = 0;
  std::thread reading([&] { EXPECT_TRUE(read.Run().ok()); });
  std::thread slow([&] {
    EXPECT_TRUE(read.Read(1,
                          [&](uint32_t, uint64_t, absl::string_view) {
                            Await([&] { return may_go_on.load(); });
                            return absl::OkStatus();
                          })
                    .ok());
  });
  std::thread fast([&] {
    EXPECT_TRUE(read.Read(0,
                          [&](uint32_t, uint64_t, absl::string_view record) {
                            fast_bytes += record.size();
                            return absl::OkStatus();
                          })
                    .ok());
  });
  // Two of three partitions, as far as a full queue of the third.
  EXPECT_TRUE(Await([&] { return fast_bytes > SharedRead::kQueueBytes; }));
  EXPECT_LT(fast_bytes, 3 * SharedRead::kQueueBytes);
  may_go_on = true;
  for (std::thread* const each : {&reading, &slow, &fast}) each->join();
}

TEST_F(SharedReadTest, AnErrorOfAPartEndsAll) {
  SharedRead read(&harness_.journal(), Parts());
  std::atomic<int> visits = 0;
  std::thread other([&] {
    EXPECT_EQ(read.Read(1, [&](uint32_t, uint64_t,
                               absl::string_view) { return absl::OkStatus(); })
                  .message(),
              "enough");
  });
  std::thread failing([&] {
    EXPECT_EQ(read.Read(0,
                        [&](uint32_t, uint64_t, absl::string_view) {
                          return ++visits == 7 ? absl::DataLossError("enough")
                                               : absl::OkStatus();
                        })
                  .message(),
              "enough");
  });
  EXPECT_TRUE(absl::IsDataLoss(read.Run()));
  other.join();
  failing.join();
  EXPECT_EQ(visits, 7);
}

TEST_F(SharedReadTest, DamageIsTheErrorOfEachPart) {
  const std::string path = harness_.LastSegment();
  std::string contents = harness_.files().Contents(path);
  contents[contents.size() / 2] ^= 1;
  harness_.files().SetContents(path, contents);
  SharedRead read(&harness_.journal(), Parts());
  std::vector<std::thread> threads;
  for (const size_t part : {0, 1}) {
    threads.emplace_back([&, part] {
      EXPECT_TRUE(absl::IsDataLoss(
          read.Read(part, [&](uint32_t, uint64_t, absl::string_view) {
            return absl::OkStatus();
          })));
    });
  }
  EXPECT_TRUE(absl::IsDataLoss(read.Run()));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace timecache::server
