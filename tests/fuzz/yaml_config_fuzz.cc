// A configuration file is refused in one line that says where, or read; what
// was read is complete, passes its own check, and comes back the same when it
// is written as YAML and read again.

#include <string>

#include "absl/strings/match.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/api/proto_to_text.h"
#include "server/main/config/config.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::server {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using fuzz::Require;
  const absl::StatusOr<config::v1::ServerConfig> config =
      ParseConfig(fuzz::Bytes(data, size), "file");
  if (!config.ok()) {
    const std::string message(config.status().message());
    Require(absl::IsInvalidArgument(config.status()), message);
    Require(absl::StartsWith(message, "file:"), message);
    Require(!absl::StrContains(message, '\n'), message);
    return 0;
  }
  const absl::Status valid = ValidateConfig(*config, "file");
  Require(valid.ok(), valid.ToString());
  const std::string yaml = ProtoToYaml(*config);
  const absl::StatusOr<config::v1::ServerConfig> again =
      ParseConfig(yaml, "file");
  Require(again.ok(), again.status().ToString() + "\n" + yaml);
  Require(google::protobuf::util::MessageDifferencer::Equals(*config, *again),
          "another configuration: " + yaml + again->DebugString());
  return 0;
}

}  // namespace timecache::server
