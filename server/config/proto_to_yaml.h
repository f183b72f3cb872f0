#ifndef TIMECACHED_SERVER_CONFIG_PROTO_TO_YAML_H_
#define TIMECACHED_SERVER_CONFIG_PROTO_TO_YAML_H_

#include <google/protobuf/message.h>

#include <string>

namespace timecache::server {

// Writes the fields of `message` that are set as the YAML that YamlToProto
// reads back, with a line's end at its end. The same limits hold: no map
// fields, no negative durations. Thread-safe.
std::string ProtoToYaml(const google::protobuf::Message& message);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CONFIG_PROTO_TO_YAML_H_
