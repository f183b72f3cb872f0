// What BatchRequest must make of bytes, by the generated parser.

#ifndef TIMECACHED_TESTS_SUPPORT_BATCH_REFERENCE_H_
#define TIMECACHED_TESTS_SUPPORT_BATCH_REFERENCE_H_

#include <ostream>
#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"

namespace timecache::server {

// A batch for comparison: an operation as text, or its refusal.
struct DecodedBatch {
  std::string status;
  std::string name;
  std::vector<std::string> operations;

  bool operator==(const DecodedBatch&) const = default;
};

std::ostream& operator<<(std::ostream& out, const DecodedBatch& decoded);

grpc::ByteBuffer Message(const std::string& bytes);

// By BatchRequest.
DecodedBatch DecodeBatch(const grpc::ByteBuffer& message);

// By the generated parser and the conversions of the unary calls.
DecodedBatch ExpectedBatch(const std::string& bytes);

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_BATCH_REFERENCE_H_
