#include "server/cluster/slot_records.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using cluster::v1::CONTROL_KIND_HEARTBEAT;
using cluster::v1::CONTROL_KIND_TAKEOVER;

ControlRecord NodeSays(cluster::v1::ControlKind kind, int64_t takeover) {
  ControlRecord record;
  record.set_node("a");
  record.set_incarnation(1);
  record.set_kind(kind);
  record.set_takeover(takeover);
  record.set_lease_us(1'000'000);
  record.set_read_offset(9);
  record.set_sent_boot_ns(5);
  return record;
}

TEST(SlotRecordsTest, EachSlotGetsItsPartAndWhatTheNodeSays) {
  ControlRecord record = NodeSays(CONTROL_KIND_HEARTBEAT, 4);
  record.set_owns(true);
  ShareRecord(4, /*leaving=*/true, &record);
  record.set_holds_journal(true);
  record.set_cuts_journal(true);
  ControlRecord owned = NodeSays(CONTROL_KIND_TAKEOVER, 7);
  owned.set_incarnation(2);
  owned.set_lag_messages(0);
  owned.set_ready(true);
  AddSlot(1, owned, /*member=*/true, &record);
  AddSlot(2, NodeSays(CONTROL_KIND_HEARTBEAT, 6), /*member=*/false, &record);
  AddSlot(3, NodeSays(CONTROL_KIND_HEARTBEAT, 0), /*member=*/false, &record);
  EXPECT_EQ(record.slots_size(), 2);
  EXPECT_TRUE(WholeRecord(record).holds_journal());
  EXPECT_TRUE(WholeRecord(record).cuts_journal());

  const std::vector<ControlRecord> slots = RecordsOfSlots(record, 4);
  for (const ControlRecord& slot : slots) {
    EXPECT_EQ(slot.node(), "a");
    EXPECT_EQ(slot.lease_us(), 1'000'000);
    EXPECT_EQ(slot.read_offset(), 9);
    EXPECT_EQ(slot.sent_boot_ns(), 5);
    EXPECT_TRUE(slot.leaving());
    EXPECT_FALSE(slot.owns());
    EXPECT_EQ(slot.slots_size(), 0);
  }
  EXPECT_EQ(slots[1].kind(), CONTROL_KIND_TAKEOVER);
  EXPECT_EQ(slots[1].incarnation(), 2u);
  EXPECT_EQ(slots[1].takeover(), 7);
  EXPECT_TRUE(slots[1].ready());
  for (const size_t other : {0, 2, 3}) {
    EXPECT_EQ(slots[other].kind(), CONTROL_KIND_HEARTBEAT);
    EXPECT_EQ(slots[other].incarnation(), 1u);
    EXPECT_FALSE(slots[other].has_lag_messages());
  }
  EXPECT_EQ(slots[2].takeover(), 6);
  EXPECT_EQ(slots[3].takeover(), 0);
}

TEST(SlotRecordsTest, ANodeThatDoesNotOwnTheClusterSendsNoTakeoverThatCounts) {
  const ControlRecord heartbeat = NodeSays(CONTROL_KIND_HEARTBEAT, 4);
  ControlRecord record = heartbeat;
  ShareRecord(4, /*leaving=*/false, &record);
  EXPECT_EQ(record.kind(), CONTROL_KIND_TAKEOVER);
  EXPECT_LT(record.takeover(), 0);
  const ControlRecord whole = WholeRecord(record);
  EXPECT_EQ(whole.kind(), CONTROL_KIND_HEARTBEAT);
  EXPECT_EQ(whole.takeover(), 4);

  ControlRecord takeover = NodeSays(CONTROL_KIND_TAKEOVER, 4);
  ShareRecord(4, /*leaving=*/false, &takeover);
  EXPECT_EQ(takeover.takeover(), 4);
  EXPECT_EQ(WholeRecord(takeover).kind(), CONTROL_KIND_TAKEOVER);
}

TEST(SlotRecordsTest, RecordsForAnotherNumberOfSlotsSayNothingOfThem) {
  ControlRecord record = NodeSays(CONTROL_KIND_HEARTBEAT, 4);
  for (const int slots : {0, 5}) {
    record.set_slot_count(static_cast<uint32_t>(slots));
    for (const ControlRecord& slot : RecordsOfSlots(record, 4)) {
      EXPECT_EQ(slot.node(), "");
    }
  }
  record.set_slot_count(4);
  AddSlot(1'000, NodeSays(CONTROL_KIND_TAKEOVER, 7), true, &record);
  EXPECT_EQ(RecordsOfSlots(record, 4).size(), 4u);
  EXPECT_EQ(KindsOfSlots(record, 4).size(), 4u);
}

}  // namespace
}  // namespace timecache::server
