// One record for all slots of a node, and each slot's part of it as a record of its own.

#ifndef TIMECACHED_SERVER_CLUSTER_SLOT_RECORDS_H_
#define TIMECACHED_SERVER_CLUSTER_SLOT_RECORDS_H_

#include <vector>

#include "server/cluster/control_log.h"

namespace timecache::server {

// control.proto says what the fields are.

// `whole` becomes what a node of a cluster of so many slots appends, without a slot in
// it yet: a takeover that never counts, unless it is one that may, or the node owns.
void ShareRecord(int slots, bool leaving, ControlRecord* whole);
// Adds what `of_slot` says of the slot, if it says anything. `member`: the node replays
// it. To be called in the order of the slots.
void AddSlot(int slot, const ControlRecord& of_slot, bool member,
             ControlRecord* record);

// What the record says of the cluster as a whole: `whole` before ShareRecord, and how
// many slots there are.
ControlRecord WholeRecord(const ControlRecord& record);
// What it says of each of so many slots, as a node would that has an owner of that
// slot alone. Of a record for another number of slots: nothing but that time passes.
std::vector<ControlRecord> RecordsOfSlots(const ControlRecord& record,
                                          int slots);

// The kinds of a record by slot, as AddSlot was given them.
std::vector<cluster::v1::ControlKind> KindsOfSlots(const ControlRecord& record,
                                                   int slots);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_SLOT_RECORDS_H_
