// More operations than one request takes.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_MANY_OPERATIONS_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_MANY_OPERATIONS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "timecache/client.h"
#include "timecache/operation.h"

namespace timecache::cli {

// Does operations in as few calls as they fit into, in their order, and calls
// `visit` with each one's number and result, in the same order. An entry that
// does not fit into one answer with those before it is asked for again.
//
// Not thread-safe. Holds one request, and one answer, at a time.
class ManyOperations {
 public:
  // False ends it: no further operation is done.
  using Visit = std::function<bool(size_t number, OperationResult& result)>;

  ManyOperations(const Client& client, Visit visit)
      : client_(client), visit_(std::move(visit)) {}

  // Does what does not fit into one request with this one. An error is of the
  // call, and ends it; those of operations are in their results.
  absl::Status Add(Operation operation);
  // Does what is left.
  absl::Status Finish();
  // Whether a visit has ended it.
  bool is_over() const { return is_over_; }

 private:
  const Client& client_;
  const Visit visit_;
  std::vector<Operation> waiting_;
  size_t bytes_ = 0;
  size_t done_ = 0;
  bool is_over_ = false;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_MANY_OPERATIONS_H_
