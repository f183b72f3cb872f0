#include "server/cluster/slot_records.h"

namespace timecache::server {
namespace {

using cluster::v1::CONTROL_KIND_HEARTBEAT;
using cluster::v1::CONTROL_KIND_TAKEOVER;
using cluster::v1::ControlKind;
using cluster::v1::SlotRecord;

// Of no takeover.
constexpr int64_t kNever = -1;

// What a record says of its node, whatever it owns.
ControlRecord NodeRecord(const ControlRecord& record) {
  ControlRecord node;
  node.set_kind(CONTROL_KIND_HEARTBEAT);
  node.set_node(record.node());
  node.set_incarnation(record.incarnation());
  node.set_address(record.address());
  node.set_version(record.version());
  node.set_lease_us(record.lease_us());
  node.set_failure_timeout_us(record.failure_timeout_us());
  node.set_sent_wall_us(record.sent_wall_us());
  node.set_sent_boot_ns(record.sent_boot_ns());
  if (record.has_read_offset()) node.set_read_offset(record.read_offset());
  node.set_number(record.number());
  node.set_slot_count(record.slot_count());
  node.set_leaving(record.leaving());
  node.set_holds_journal(record.holds_journal());
  node.set_cuts_journal(record.cuts_journal());
  return node;
}

void SetSlot(const SlotRecord& slot, ControlRecord* record) {
  record->set_kind(slot.kind());
  if (slot.incarnation() != 0) record->set_incarnation(slot.incarnation());
  record->set_takeover(slot.takeover());
  record->set_owns(slot.owns());
  record->set_owner_since_ms(slot.owner_since_ms());
  record->set_successor(slot.successor());
  record->set_journal_id(slot.journal_id());
  if (slot.has_lag_messages()) record->set_lag_messages(slot.lag_messages());
  record->set_ready(slot.ready());
  if (slot.has_lag_age_us()) record->set_lag_age_us(slot.lag_age_us());
}

}  // namespace

void ShareRecord(int slots, bool leaving, ControlRecord* whole) {
  whole->set_slot_count(static_cast<uint32_t>(slots));
  whole->set_leaving(leaving);
  if (whole->owns() || whole->kind() == CONTROL_KIND_TAKEOVER) return;
  whole->set_kind(CONTROL_KIND_TAKEOVER);
  whole->set_cluster_takeover(whole->takeover());
  whole->set_takeover(kNever);
}

void AddSlot(int slot, const ControlRecord& of_slot, bool member,
             ControlRecord* record) {
  if (!member && of_slot.takeover() == 0) return;
  SlotRecord* const added = record->add_slots();
  added->set_slot(static_cast<uint32_t>(slot));
  added->set_takeover(of_slot.takeover());
  added->set_journal_id(of_slot.journal_id());
  if (!member) {
    added->set_kind(CONTROL_KIND_HEARTBEAT);
    return;
  }
  added->set_kind(of_slot.kind());
  added->set_incarnation(of_slot.incarnation());
  added->set_owns(of_slot.owns());
  added->set_owner_since_ms(of_slot.owner_since_ms());
  added->set_successor(of_slot.successor());
  if (of_slot.has_lag_messages()) {
    added->set_lag_messages(of_slot.lag_messages());
  }
  added->set_ready(of_slot.ready());
  if (of_slot.has_lag_age_us()) added->set_lag_age_us(of_slot.lag_age_us());
}

ControlRecord WholeRecord(const ControlRecord& record) {
  ControlRecord whole = NodeRecord(record);
  whole.set_kind(record.kind());
  whole.set_takeover(record.takeover());
  if (record.takeover() == kNever) {
    whole.set_kind(CONTROL_KIND_HEARTBEAT);
    whole.set_takeover(record.cluster_takeover());
  }
  whole.set_owns(record.owns());
  whole.set_owner_since_ms(record.owner_since_ms());
  whole.set_successor(record.successor());
  whole.set_journal_id(record.journal_id());
  if (record.has_lag_messages()) whole.set_lag_messages(record.lag_messages());
  whole.set_ready(record.ready());
  if (record.has_lag_age_us()) whole.set_lag_age_us(record.lag_age_us());
  return whole;
}

std::vector<ControlRecord> RecordsOfSlots(const ControlRecord& record,
                                          int slots) {
  ControlRecord node = NodeRecord(record);
  const bool alike = record.slot_count() == static_cast<uint32_t>(slots);
  if (!alike) node.clear_node();
  std::vector<ControlRecord> records(static_cast<size_t>(slots), node);
  if (!alike) return records;
  for (const SlotRecord& slot : record.slots()) {
    if (slot.slot() < records.size()) SetSlot(slot, &records[slot.slot()]);
  }
  return records;
}

std::vector<ControlKind> KindsOfSlots(const ControlRecord& record, int slots) {
  std::vector<ControlKind> kinds(static_cast<size_t>(slots),
                                 CONTROL_KIND_HEARTBEAT);
  for (const SlotRecord& slot : record.slots()) {
    if (slot.slot() < kinds.size()) kinds[slot.slot()] = slot.kind();
  }
  return kinds;
}

}  // namespace timecache::server
