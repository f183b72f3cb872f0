// Messages and errors as JSON.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_RPC_JSON_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_RPC_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"

namespace timecache::cli {

// A message of this type, which is proto3 JSON, in its binary form.
// INVALID_ARGUMENT names the field that is wrong.
absl::StatusOr<std::string> BinaryOf(const google::protobuf::Descriptor& type,
                                     const std::string& json);

// Appends a message in its binary form as proto3 JSON, in one line, with default
// values. Takes some 20 times the message's size while it runs.
absl::Status AppendJson(const google::protobuf::Descriptor& type,
                        grpc::ByteBuffer* binary, std::string* json);

// {"error":{"code":"NOT_FOUND","message":..,"reason":..,"metadata":{..}}}
std::string ErrorJson(const absl::Status& status);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_RPC_JSON_H_
