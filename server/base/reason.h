// Reasons of errors, for programs.

#ifndef TIMECACHED_SERVER_BASE_REASON_H_
#define TIMECACHED_SERVER_BASE_REASON_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Those of ErrorReason in errors.proto, which documents each, with the same
// numbers; a test keeps the two equal. Repeated here because the engine does
// not depend on protobuf.
enum class Reason : uint8_t {
  kInvalidField = 1,
  kMalformedRequest = 2,
  kRequestTooLarge = 3,
  kNamespaceNotFound = 4,
  kDraining = 5,
  kUnknownMethod = 6,
  kNoCredentials = 7,
  kUnknownCertificate = 8,
  kUnknownToken = 9,
  kMalformedCredentials = 10,
  kAccessDenied = 11,
  kMaxOperationRate = 12,
  kUnreadResponses = 13,
  kInternalError = 14,
  kNotOwner = 15,
  kOwnershipLost = 16,

  kKeyExists = 20,
  kKeyNotFound = 21,
  kVersionMismatch = 22,
  kMaxEntries = 23,
  kMaxBytes = 24,
  kServerMaxEntries = 25,
  kServerMaxBytes = 26,
  kMaxMemory = 27,
  kShardFull = 28,
  kMaxResponseBytes = 29,
  kMaxCallDuration = 30,
  kDiskFull = 31,
  kJournalBacklog = 32,
  kValueTooLarge = 33,
  kValueKindMismatch = 34,
  kNotANumber = 35,
  kNumberOverflow = 36,
  kGatherMismatch = 37,
  kPartExists = 38,
  kGatherComplete = 39,

  kResumePointTrimmed = 40,
  kResumePointAhead = 41,
  kLogChanged = 42,
  kMaxWatchers = 43,
  kMaxExpiringWatchers = 44,
  kEventNotUnsettled = 45,
  kStaleAttempt = 46,
  kGroupNotFound = 47,
  kSingleActive = 48,
  kNoChanges = 49,

  kNamespaceExists = 60,
  kMaxNamespaces = 61,
  kGroupExists = 62,
  kMaxGroups = 63,
  kNoJournal = 64,
  kMaxBackups = 65,
  kNoCluster = 66,
  kNoSuccessor = 67,
  kConnectionNotFound = 68,
  kMaxTails = 69,

  kUnknownService = 80,
  kMaxHealthWatches = 81,

  kNotApplied = 90,
};

// Its name in errors.proto: "KEY_EXISTS".
absl::string_view ReasonName(Reason reason);
// The one of that name.
std::optional<Reason> ReasonOfName(absl::string_view name);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_REASON_H_
