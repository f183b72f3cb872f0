// The fields of one operation of a batch, read by hand.

#ifndef TIMECACHED_SERVER_RPC_DATA_OPERATION_FIELDS_H_
#define TIMECACHED_SERVER_RPC_DATA_OPERATION_FIELDS_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

// Reads the request of an operation of `op->kind`, such as a PutRequest, in the
// plain form that every serializer writes: each field once, no unknown ones.
// False for any other, malformed or only unusual, and for requests that the
// generated parser would refuse; `*op` may then be half set. Its key and value
// are views of `bytes`. `new_gathering` is called for the expected parts of a
// Gather, at most once.
bool ReadOperationFields(absl::string_view bytes, Operation* op,
                         absl::FunctionRef<Gathering*()> new_gathering);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_OPERATION_FIELDS_H_
