#include "server/base/reason.h"

namespace timecache::server {
namespace {

struct Named {
  Reason reason;
  absl::string_view name;
};

constexpr Named kReasons[] = {
    {Reason::kInvalidField, "INVALID_FIELD"},
    {Reason::kMalformedRequest, "MALFORMED_REQUEST"},
    {Reason::kRequestTooLarge, "REQUEST_TOO_LARGE"},
    {Reason::kNamespaceNotFound, "NAMESPACE_NOT_FOUND"},
    {Reason::kDraining, "DRAINING"},
    {Reason::kUnknownMethod, "UNKNOWN_METHOD"},
    {Reason::kNoCredentials, "NO_CREDENTIALS"},
    {Reason::kUnknownCertificate, "UNKNOWN_CERTIFICATE"},
    {Reason::kUnknownToken, "UNKNOWN_TOKEN"},
    {Reason::kMalformedCredentials, "MALFORMED_CREDENTIALS"},
    {Reason::kAccessDenied, "ACCESS_DENIED"},
    {Reason::kMaxOperationRate, "MAX_OPERATION_RATE"},
    {Reason::kUnreadResponses, "UNREAD_RESPONSES"},
    {Reason::kInternalError, "INTERNAL_ERROR"},
    {Reason::kNotOwner, "NOT_OWNER"},
    {Reason::kOwnershipLost, "OWNERSHIP_LOST"},
    {Reason::kKeyExists, "KEY_EXISTS"},
    {Reason::kKeyNotFound, "KEY_NOT_FOUND"},
    {Reason::kVersionMismatch, "VERSION_MISMATCH"},
    {Reason::kMaxEntries, "MAX_ENTRIES"},
    {Reason::kMaxBytes, "MAX_BYTES"},
    {Reason::kServerMaxEntries, "SERVER_MAX_ENTRIES"},
    {Reason::kServerMaxBytes, "SERVER_MAX_BYTES"},
    {Reason::kMaxMemory, "MAX_MEMORY"},
    {Reason::kShardFull, "SHARD_FULL"},
    {Reason::kMaxResponseBytes, "MAX_RESPONSE_BYTES"},
    {Reason::kMaxCallDuration, "MAX_CALL_DURATION"},
    {Reason::kDiskFull, "DISK_FULL"},
    {Reason::kJournalBacklog, "JOURNAL_BACKLOG"},
    {Reason::kValueTooLarge, "VALUE_TOO_LARGE"},
    {Reason::kValueKindMismatch, "VALUE_KIND_MISMATCH"},
    {Reason::kNotANumber, "NOT_A_NUMBER"},
    {Reason::kNumberOverflow, "NUMBER_OVERFLOW"},
    {Reason::kGatherMismatch, "GATHER_MISMATCH"},
    {Reason::kPartExists, "PART_EXISTS"},
    {Reason::kGatherComplete, "GATHER_COMPLETE"},
    {Reason::kResumePointTrimmed, "RESUME_POINT_TRIMMED"},
    {Reason::kResumePointAhead, "RESUME_POINT_AHEAD"},
    {Reason::kLogChanged, "LOG_CHANGED"},
    {Reason::kMaxWatchers, "MAX_WATCHERS"},
    {Reason::kMaxExpiringWatchers, "MAX_EXPIRING_WATCHERS"},
    {Reason::kEventNotUnsettled, "EVENT_NOT_UNSETTLED"},
    {Reason::kStaleAttempt, "STALE_ATTEMPT"},
    {Reason::kGroupNotFound, "GROUP_NOT_FOUND"},
    {Reason::kNoChanges, "NO_CHANGES"},
    {Reason::kSingleActive, "SINGLE_ACTIVE"},
    {Reason::kNamespaceExists, "NAMESPACE_EXISTS"},
    {Reason::kMaxNamespaces, "MAX_NAMESPACES"},
    {Reason::kGroupExists, "GROUP_EXISTS"},
    {Reason::kMaxGroups, "MAX_GROUPS"},
    {Reason::kNoJournal, "NO_JOURNAL"},
    {Reason::kMaxBackups, "MAX_BACKUPS"},
    {Reason::kNoCluster, "NO_CLUSTER"},
    {Reason::kNoSuccessor, "NO_SUCCESSOR"},
    {Reason::kConnectionNotFound, "CONNECTION_NOT_FOUND"},
    {Reason::kMaxTails, "MAX_TAILS"},
    {Reason::kUnknownService, "UNKNOWN_SERVICE"},
    {Reason::kMaxHealthWatches, "MAX_HEALTH_WATCHES"},
    {Reason::kNotApplied, "NOT_APPLIED"},
};

}  // namespace

absl::string_view ReasonName(Reason reason) {
  for (const Named& named : kReasons) {
    if (named.reason == reason) return named.name;
  }
  return "";
}

std::optional<Reason> ReasonOfName(absl::string_view name) {
  for (const Named& named : kReasons) {
    if (named.name == name) return named.reason;
  }
  return std::nullopt;
}

}  // namespace timecache::server
