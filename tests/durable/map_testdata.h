// A server of durable namespaces with something of everything, and all that can
// be seen of one: for directories that are recovered for ever.

#ifndef TIMECACHED_TESTS_DURABLE_MAP_TESTDATA_H_
#define TIMECACHED_TESTS_DURABLE_MAP_TESTDATA_H_

#include <string>

#include "tests/support/journal/durable_store.h"

namespace timecache::server {

enum class Filling {
  // Namespaces that are full, changed and deleted; entries that are
  // overwritten, renewed, removed, evicted, dead of time and by hand; groups
  // with events that are settled, failed, put back, dead-lettered and
  // untouched.
  kAll,
  // After half of that a checkpoint is made: the beginning is told again.
  kTrimmed,
  // After that a restart, too: the events stay for longer.
  kRetained,
  // As kAll, and values that were appended to, counted and gathered, and a
  // namespace whose time stood still over a restart.
  kChanged,
};

// False if something was not answered as it should be.
bool FillStore(Filling filling, DurableStore* store);

// Namespaces with their options, entries, events and groups, a line each, in
// an order of their own. Takes the events that a group has for a member and
// gives them back.
std::string DescribeStore(DurableStore* store);

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_DURABLE_MAP_TESTDATA_H_
