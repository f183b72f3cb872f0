#ifndef TIMECACHED_SERVER_CONFIG_PROTO_TO_JSON_H_
#define TIMECACHED_SERVER_CONFIG_PROTO_TO_JSON_H_

#include <google/protobuf/message.h>

#include <string>

namespace timecache::server {

// Writes the fields of `message` that are set as a JSON object in one line, for
// logs: names and values as in the configuration (durations as "30s", enums in
// lower case without prefix), numbers as numbers. No map fields, no negative
// durations. Thread-safe.
std::string ProtoToJson(const google::protobuf::Message& message);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CONFIG_PROTO_TO_JSON_H_
