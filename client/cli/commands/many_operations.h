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
  // Returns whether the operation is done; an error ends all.
  using Visit =
      std::function<absl::Status(size_t number, OperationResult& result)>;

  ManyOperations(const Client& client, Visit visit)
      : client_(client), visit_(std::move(visit)) {}

  // Does what does not fit into one request with this one. Returns the error of
  // the call, or the first one of a visit; later calls return that again.
  absl::Status Add(Operation operation);
  // Does what is left.
  absl::Status Finish();

 private:
  const Client& client_;
  const Visit visit_;
  std::vector<Operation> waiting_;
  size_t bytes_ = 0;
  size_t done_ = 0;
  absl::Status failure_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_MANY_OPERATIONS_H_
