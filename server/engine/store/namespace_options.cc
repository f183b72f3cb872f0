#include "server/engine/store/namespace_options.h"

#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

std::string DurationText(int64_t time_us) {
  return absl::FormatDuration(absl::Microseconds(time_us));
}

}  // namespace

absl::Status Validate(const NamespaceOptions& o) {
  if (absl::Status status = CheckRanges(o); !status.ok()) return status;
  if (!o.dead_letter_namespace.empty() &&
      !ValidateNamespaceName(o.dead_letter_namespace).ok()) {
    return InvalidField(
        "dead_letter_namespace",
        absl::StrCat("must be a namespace's name or empty, not ",
                     absl::CEscape(o.dead_letter_namespace)));
  }
  if (o.restart_policy == RestartPolicy::kPause && !IsDurable(o)) {
    return InvalidField("restart_policy",
                        "may be pause only if durability is not memory: such "
                        "a namespace does not survive a restart");
  }
  if (!std::has_single_bit(static_cast<unsigned>(o.num_shards))) {
    return InvalidField(
        "num_shards",
        absl::StrCat("must be a power of two, not ", o.num_shards));
  }
  if (BucketWidthUs(o) < kMinBucketWidthUs) {
    return InvalidField(
        "num_buckets",
        absl::StrCat("of ", o.num_buckets, " makes buckets narrower than ",
                     DurationText(kMinBucketWidthUs), ": for a ttl of ",
                     DurationText(o.ttl_us), " take at most ",
                     o.ttl_us / kMinBucketWidthUs + 1));
  }
  return absl::OkStatus();
}

NamespaceOptions ShareOf(const NamespaceOptions& options) {
  NamespaceOptions share = options;
  const int64_t parts = options.num_partitions;
  if (parts == 1) return share;
  const auto divide = [parts](int64_t whole) {
    return whole / parts + (whole % parts == 0 ? 0 : 1);
  };
  share.max_entries = divide(options.max_entries);
  share.max_bytes = divide(options.max_bytes);
  share.max_operations_per_second = divide(options.max_operations_per_second);
  share.retention_bytes =
      std::max(divide(options.retention_bytes), kMinRetentionBytes);
  share.max_backlog_bytes =
      std::max(divide(BacklogLimitBytes(options)), kMinBacklogBytes);
  share.change_retention_bytes =
      std::max(divide(options.change_retention_bytes), kMinRetentionBytes);
  share.idempotency_max_ids = divide(options.idempotency_max_ids);
  return share;
}

absl::Status CheckDurability(NamespaceDurability durability, JournalKind kind) {
  const bool replicated = durability == NamespaceDurability::kReplicated;
  if (durability == NamespaceDurability::kMemory ||
      kind == (replicated ? JournalKind::kCluster : JournalKind::kDisk)) {
    return absl::OkStatus();
  }
  if (replicated) {
    return InvalidField(
        "durability",
        "replicated needs a cluster: set cluster.name and "
        "cluster.kafka.brokers, or start the server with --cluster NAME and "
        "--kafka-brokers LIST");
  }
  if (kind == JournalKind::kCluster) {
    return InvalidField("durability",
                        "must be replicated or memory: a node of a cluster "
                        "has no journal on its disk");
  }
  return InvalidField("durability",
                      "needs a journal: set journal.directory, or start the "
                      "server with --journal DIRECTORY");
}

absl::Status ValidateNamespaceName(absl::string_view name) {
  constexpr size_t kMaxNameLength = 63;
  const auto alphanumeric = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  bool ok = !name.empty() && name.size() <= kMaxNameLength &&
            alphanumeric(name.front()) && alphanumeric(name.back());
  for (char c : name) ok = ok && (alphanumeric(c) || c == '-' || c == '.');
  if (ok) return absl::OkStatus();
  return InvalidField("namespace",
                      name.empty()
                          ? "must be set"
                          : "must be 1 to 63 characters of a-z, 0-9, '-' and "
                            "'.', and begin and end with a letter or digit");
}

}  // namespace timecache::server
