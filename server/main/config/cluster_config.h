// What a node of a cluster reads besides its configuration.

#ifndef TIMECACHED_SERVER_MAIN_CONFIG_CLUSTER_CONFIG_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_CLUSTER_CONFIG_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// librdkafka's properties: those of `properties`, and those of `property_files`
// with the text of their files, at most 64 KiB each. An error names the field
// and the file, with ReadFile's code. Thread-safe; reads the files anew.
absl::StatusOr<std::map<std::string, std::string>> ReadKafkaProperties(
    const config::v1::KafkaConfig& kafka);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_CLUSTER_CONFIG_H_
