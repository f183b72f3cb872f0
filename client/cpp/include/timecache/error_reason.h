// Why the server refused, for programs.

#ifndef TIMECACHE_ERROR_REASON_H_
#define TIMECACHE_ERROR_REASON_H_

#include <cstdint>

namespace timecache {

// The reasons of google.rpc.ErrorInfo that a client meets, with the numbers of
// timecache.v1.ErrorReason. A later server may have more of them: for an
// unknown reason go by the status code. See HasReason in timecache/status.h.
enum class ErrorReason : int32_t {
  // --- Any call.

  // INVALID_ARGUMENT: a field is malformed or out of its range; a
  // google.rpc.BadRequest names it.
  kInvalidField = 1,
  // INVALID_ARGUMENT: the bytes do not parse as the method's request message.
  kMalformedRequest = 2,
  // INVALID_ARGUMENT: the request is too large, and no single field is the
  // cause.
  kRequestTooLarge = 3,
  // NOT_FOUND: no such namespace.
  kNamespaceNotFound = 4,
  // UNAVAILABLE: the server is being stopped.
  kDraining = 5,
  // UNIMPLEMENTED: no such method.
  kUnknownMethod = 6,
  // UNAUTHENTICATED: the call has neither a client certificate nor a token.
  kNoCredentials = 7,
  // UNAUTHENTICATED: no principal has this certificate.
  kUnknownCertificate = 8,
  // UNAUTHENTICATED: no principal has this token.
  kUnknownToken = 9,
  // UNAUTHENTICATED: the metadata "authorization" is no bearer token.
  kMalformedCredentials = 10,
  // PERMISSION_DENIED. Metadata: principal, namespace, verb.
  kAccessDenied = 11,
  // RESOURCE_EXHAUSTED: the namespace has reached its
  // max_operations_per_second; a google.rpc.RetryInfo says when to retry.
  kMaxOperationRate = 12,
  // RESOURCE_EXHAUSTED: the client of the connection does not read its
  // responses fast enough, or all clients together do not.
  kUnreadResponses = 13,
  // INTERNAL or UNKNOWN: a bug of the server.
  kInternalError = 14,
  // UNAVAILABLE: this node of a cluster is not the owner. Nothing of the call
  // was applied. Metadata: owner_address, absent while none is known.
  kNotOwner = 15,
  // UNAVAILABLE: the node lost the ownership while the call waited. What the
  // call writes may or may not be applied.
  kOwnershipLost = 16,

  // --- Data.

  // FAILED_PRECONDITION: the key exists.
  kKeyExists = 20,
  // FAILED_PRECONDITION: the key does not exist.
  kKeyNotFound = 21,
  // FAILED_PRECONDITION: the entry has another version.
  kVersionMismatch = 22,
  // RESOURCE_EXHAUSTED: the namespace's max_entries.
  kMaxEntries = 23,
  // RESOURCE_EXHAUSTED: the namespace's max_bytes.
  kMaxBytes = 24,
  // RESOURCE_EXHAUSTED: the server's limits.max_entries.
  kServerMaxEntries = 25,
  // RESOURCE_EXHAUSTED: the server's limits.max_bytes.
  kServerMaxBytes = 26,
  // RESOURCE_EXHAUSTED: limits.max_memory_bytes, or the process's own limit.
  kMaxMemory = 27,
  // RESOURCE_EXHAUSTED: 12 million entries in one shard.
  kShardFull = 28,
  // RESOURCE_EXHAUSTED: an operation's entry does not fit into the response of
  // its batch.
  kMaxResponseBytes = 29,
  // DEADLINE_EXCEEDED: the client of a scan did not read for
  // limits.max_call_duration. Only in the server's log and metrics: to a client
  // that does not read, the server cannot send details.
  kMaxCallDuration = 30,
  // RESOURCE_EXHAUSTED: the disk of the server's journal has no room for a
  // change in a namespace of durability ASYNC or SYNC. Reads, deaths and
  // watches go on; changes succeed again once there is room.
  kDiskFull = 31,
  // RESOURCE_EXHAUSTED: too many bytes wait for the journal's disk; a
  // google.rpc.RetryInfo says when to retry.
  kJournalBacklog = 32,
  // FAILED_PRECONDITION: an Append, Combine or Gather would make the value
  // larger than the namespace's max_value_bytes. (A value or part that is too
  // large by itself is kInvalidField.)
  kValueTooLarge = 33,
  // FAILED_PRECONDITION: an Append or Combine of a key that collects the parts
  // of a Gather, or a Gather of a key that has a value.
  kValueKindMismatch = 34,
  // FAILED_PRECONDITION: a Combine of a value that is not a number as Combine
  // writes it.
  kNotANumber = 35,
  // FAILED_PRECONDITION: the sum is not a 64-bit number.
  kNumberOverflow = 36,
  // FAILED_PRECONDITION: the key collects parts for a Gather that expects
  // others.
  kGatherMismatch = 37,
  // ALREADY_EXISTS: the key has a part of that name, with another value.
  kPartExists = 38,
  // ALREADY_EXISTS: a Gather has completed the key, which is still remembered.
  kGatherComplete = 39,

  // --- Watches and consumer groups.

  // OUT_OF_RANGE: events after the resume token are no longer retained.
  // Metadata: namespace, lost.
  kResumePointTrimmed = 40,
  // OUT_OF_RANGE: the log has not reached the resume token. Metadata:
  // namespace.
  kResumePointAhead = 41,
  // FAILED_PRECONDITION: the resume token is of another log. Metadata:
  // namespace.
  kLogChanged = 42,
  // RESOURCE_EXHAUSTED: limits.max_watchers.
  kMaxWatchers = 43,
  // RESOURCE_EXHAUSTED: the namespace has 256 WatchExpiring streams.
  kMaxExpiringWatchers = 44,
  // NOT_FOUND: no such event waits to be settled.
  kEventNotUnsettled = 45,
  // FAILED_PRECONDITION: the event has been delivered to another member.
  kStaleAttempt = 46,
  // NOT_FOUND: no such group.
  kGroupNotFound = 47,
  // FAILED_PRECONDITION: a FetchExpired of a group that is single_active.
  kSingleActive = 48,

  // FAILED_PRECONDITION: the namespace keeps no changes (change_retention).
  kNoChanges = 49,

  // --- Administration.

  // ALREADY_EXISTS.
  kNamespaceExists = 60,
  // RESOURCE_EXHAUSTED: limits.max_namespaces.
  kMaxNamespaces = 61,
  // ALREADY_EXISTS.
  kGroupExists = 62,
  // RESOURCE_EXHAUSTED: 64 groups in a namespace.
  kMaxGroups = 63,
  // FAILED_PRECONDITION: the server keeps no journal, so there is nothing to
  // back up.
  kNoJournal = 64,
  // RESOURCE_EXHAUSTED: two backups are in progress.
  kMaxBackups = 65,
  // FAILED_PRECONDITION: the server is no node of a cluster.
  kNoCluster = 66,
  // FAILED_PRECONDITION: no standby, or none of that name, has caught up with
  // the journal.
  kNoSuccessor = 67,
  // NOT_FOUND: no connection has this id.
  kConnectionNotFound = 68,
  // RESOURCE_EXHAUSTED: four streams of TailCalls are open.
  kMaxTails = 69,

  // --- grpc.health.v1 and grpc.reflection.

  // NOT_FOUND: the server has no such service, or reflection no such symbol.
  kUnknownService = 80,
  // Not given any more: too many watches of health.
  kMaxHealthWatches = 81,

  // --- Atomic batches.

  // ABORTED: another operation of the same atomic Batch failed, so this one was
  // not applied.
  kNotApplied = 90,
};

}  // namespace timecache

#endif  // TIMECACHE_ERROR_REASON_H_
