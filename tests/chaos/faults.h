// What befalls a cluster.

#ifndef TIMECACHED_TESTS_CHAOS_FAULTS_H_
#define TIMECACHED_TESTS_CHAOS_FAULTS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/engine/dice.h"

namespace timecache::test {

// `await_service` returns when calls succeed that began after it. A fault ends
// with all processes running, though not with all caught up.
struct Fault {
  const char* name;
  void (*befall)(TestCluster& cluster, Dice& dice,
                 absl::FunctionRef<void()> await_service);
};

const std::vector<Fault>& AllFaults();
// Where nodes share the ownership, and have links to each other: the owner is the one
// that has most slots.
const std::vector<Fault>& SharedFaults();
// Those of these names, divided by commas, in that order. Fails the test if there
// is no such fault.
std::vector<Fault> FaultsNamed(const std::string& names,
                               const std::vector<Fault>& all = AllFaults());

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CHAOS_FAULTS_H_
