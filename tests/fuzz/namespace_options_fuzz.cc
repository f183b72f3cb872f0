// The options of namespaces and groups: what the engine takes is within its
// ranges, and comes back the same in an answer.

#include "server/api/proto_namespace.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "tests/fuzz/fuzz.h"
#include "timecache/v1/namespaces.pb.h"

namespace timecache::server {
namespace {

using fuzz::Require;

void CheckRefusal(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status), status.ToString());
  Require(FieldOf(status).has_value(), "the refusal names a field");
}

void CheckMap(const v1::NamespaceOptions& from) {
  const absl::StatusOr<NamespaceOptions> options = NewOptions(from);
  if (!options.ok()) return CheckRefusal(options.status());
  if (const absl::Status valid = Validate(*options); !valid.ok()) {
    return CheckRefusal(valid);
  }
  Require(options->ttl_us >= kMinTtlUs && options->ttl_us <= kMaxTtlUs, "ttl");
  Require(options->max_ttl_us >= options->ttl_us, "max_ttl");
  Require(options->num_buckets >= 2, "num_buckets");
  Require(BucketWidthUs(*options) >= 1, "bucket width");
  v1::NamespaceOptions written;
  SetOptions(*options, &written);
  const absl::StatusOr<NamespaceOptions> again = NewOptions(written);
  Require(again.ok(), again.status().ToString());
  v1::NamespaceOptions written_again;
  SetOptions(*again, &written_again);
  Require(written.SerializeAsString() == written_again.SerializeAsString(),
          written.DebugString() + written_again.DebugString());
}

void CheckGroup(const v1::GroupOptions& from) {
  GroupOptions options;
  if (const absl::Status set = ApplyOptions(from, &options); !set.ok()) {
    return CheckRefusal(set);
  }
  if (const absl::Status valid = Validate(options); !valid.ok()) {
    return CheckRefusal(valid);
  }
  v1::GroupOptions written;
  SetOptions(options, &written);
  GroupOptions again;
  Require(ApplyOptions(written, &again).ok(), written.DebugString());
  Require(again.ack_timeout_us == options.ack_timeout_us &&
              again.max_attempts == options.max_attempts &&
              again.max_backlog_bytes == options.max_backlog_bytes,
          written.DebugString());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  v1::NamespaceOptions map;
  if (map.ParseFromArray(data, static_cast<int>(size))) CheckMap(map);
  v1::GroupOptions group;
  if (group.ParseFromArray(data, static_cast<int>(size))) CheckGroup(group);
  return 0;
}

}  // namespace timecache::server
