#ifndef TIMECACHED_SERVER_API_PROTO_TO_TEXT_H_
#define TIMECACHED_SERVER_API_PROTO_TO_TEXT_H_

#include <string>

#include "google/protobuf/message.h"

namespace timecache::server {

// The fields of `message` that are set, with names and values as in the
// configuration: durations as "30s", enums in lower case without prefix. Of
// the types that YamlToProto knows; no negative durations. Thread-safe.

// A JSON object in one line, for logs; numbers as numbers.
std::string ProtoToJson(const google::protobuf::Message& message);

// The YAML that YamlToProto reads back, with a line's end at its end.
std::string ProtoToYaml(const google::protobuf::Message& message);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_PROTO_TO_TEXT_H_
