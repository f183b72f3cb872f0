#ifndef TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The server's configuration: read, completed with config.proto's defaults,
// checked.
//
// What these functions return has every field of config.proto set, so that it
// shows the values in force; only NamespaceOptions stay as they were written:
// their defaults and limits are the engine's, and limits.max_memory_bytes,
// which depends on the machine (system_memory.h). Errors are INVALID_ARGUMENT,
// in one line that begins with the file, the line and the field's full name.
// Thread-safe.

inline constexpr int kMaxListeners = 16;

// The configuration of a server without file and flags: one listener on
// 127.0.0.1:7171 and one namespace, "default".
config::v1::ServerConfig DefaultConfig();

// Reads YAML (see yaml_to_proto.h). An empty text is DefaultConfig().
// `source_name` stands in errors, for the file's name.
absl::StatusOr<config::v1::ServerConfig> ParseConfig(
    absl::string_view yaml, absl::string_view source_name);

// Reads a file. One that cannot be read: NOT_FOUND, PERMISSION_DENIED or
// another code that fits the system's reason; RESOURCE_EXHAUSTED for one of
// more than kMaxYamlBytes.
absl::StatusOr<config::v1::ServerConfig> LoadConfig(const std::string& path);

// Checks a configuration that was changed after it was read.
absl::Status ValidateConfig(const config::v1::ServerConfig& config,
                            absl::string_view source_name);

// Logs as the configuration says: SetLogging with its level and format.
void SetLogging(const config::v1::LogConfig& config);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_H_
