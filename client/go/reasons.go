package timecache

// Reason is why the server refused: the name of a timecache.v1.ErrorReason. It is an error
// for [errors.Is]:
//
//	if errors.Is(err, timecache.KeyExists) { ... }
type Reason string

// Error returns the reason's name.
func (r Reason) Error() string { return string(r) }

// The reasons that the server has. A later one may have more of them: go by the code then.
const (
	// InvalidField: INVALID_ARGUMENT: a field is malformed or out of its range; a
	// google.rpc.BadRequest names it.
	InvalidField Reason = "INVALID_FIELD"
	// MalformedRequest: INVALID_ARGUMENT: the bytes are no message of the method's
	// request.
	MalformedRequest Reason = "MALFORMED_REQUEST"
	// RequestTooLarge: INVALID_ARGUMENT: the request is too large, and no one field is
	// why.
	RequestTooLarge Reason = "REQUEST_TOO_LARGE"
	// NamespaceNotFound: NOT_FOUND: no such namespace.
	NamespaceNotFound Reason = "NAMESPACE_NOT_FOUND"
	// Draining: UNAVAILABLE: the server is being stopped.
	Draining Reason = "DRAINING"
	// UnknownMethod: UNIMPLEMENTED: no such method.
	UnknownMethod Reason = "UNKNOWN_METHOD"
	// NoCredentials: UNAUTHENTICATED: the call has neither a client certificate nor a
	// token.
	NoCredentials Reason = "NO_CREDENTIALS"
	// UnknownCertificate: UNAUTHENTICATED: the rules do not know this certificate.
	UnknownCertificate Reason = "UNKNOWN_CERTIFICATE"
	// UnknownToken: UNAUTHENTICATED: the rules do not know this token.
	UnknownToken Reason = "UNKNOWN_TOKEN"
	// MalformedCredentials: UNAUTHENTICATED: the metadata "authorization" is no bearer
	// token.
	MalformedCredentials Reason = "MALFORMED_CREDENTIALS"
	// AccessDenied: PERMISSION_DENIED. Metadata: principal, namespace, verb.
	AccessDenied Reason = "ACCESS_DENIED"
	// MaxOperationRate: RESOURCE_EXHAUSTED: the namespace has had its
	// max_operations_per_second; a google.rpc.RetryInfo says when to come again.
	MaxOperationRate Reason = "MAX_OPERATION_RATE"
	// UnreadResponses: RESOURCE_EXHAUSTED: the connection has asked for more than it
	// reads, or all have.
	UnreadResponses Reason = "UNREAD_RESPONSES"
	// InternalError: INTERNAL or UNKNOWN: a bug of the server.
	InternalError Reason = "INTERNAL_ERROR"

	// KeyExists: FAILED_PRECONDITION: the key is there.
	KeyExists Reason = "KEY_EXISTS"
	// KeyNotFound: FAILED_PRECONDITION: the key is not there.
	KeyNotFound Reason = "KEY_NOT_FOUND"
	// VersionMismatch: FAILED_PRECONDITION: the entry has another version.
	VersionMismatch Reason = "VERSION_MISMATCH"
	// MaxEntries: RESOURCE_EXHAUSTED: the namespace's max_entries.
	MaxEntries Reason = "MAX_ENTRIES"
	// MaxBytes: RESOURCE_EXHAUSTED: the namespace's max_bytes.
	MaxBytes Reason = "MAX_BYTES"
	// ServerMaxEntries: RESOURCE_EXHAUSTED: the server's limits.max_entries.
	ServerMaxEntries Reason = "SERVER_MAX_ENTRIES"
	// ServerMaxBytes: RESOURCE_EXHAUSTED: the server's limits.max_bytes.
	ServerMaxBytes Reason = "SERVER_MAX_BYTES"
	// MaxMemory: RESOURCE_EXHAUSTED: limits.max_memory_bytes, or the process's own limit.
	MaxMemory Reason = "MAX_MEMORY"
	// ShardFull: RESOURCE_EXHAUSTED: 12 million entries in one shard.
	ShardFull Reason = "SHARD_FULL"
	// MaxResponseBytes: RESOURCE_EXHAUSTED: an operation's entry does not fit into the
	// response of its batch.
	MaxResponseBytes Reason = "MAX_RESPONSE_BYTES"
	// MaxCallDuration: DEADLINE_EXCEEDED: a scan took limits.max_call_duration.
	MaxCallDuration Reason = "MAX_CALL_DURATION"
	// DiskFull: RESOURCE_EXHAUSTED: the disk of the server's journal has no room for a
	// change in a namespace of durability ASYNC or SYNC. Reads, deaths and watches go on;
	// changes succeed again once there is room.
	DiskFull Reason = "DISK_FULL"
	// JournalBacklog: RESOURCE_EXHAUSTED: more bytes wait for the journal's disk than may;
	// a google.rpc.RetryInfo says when to come again.
	JournalBacklog Reason = "JOURNAL_BACKLOG"
	// ValueTooLarge: FAILED_PRECONDITION: with what an Append, Combine or Gather adds, the
	// value would be larger than the namespace's max_value_bytes. (A value or part that is
	// too large by itself is INVALID_FIELD.)
	ValueTooLarge Reason = "VALUE_TOO_LARGE"
	// ValueKindMismatch: FAILED_PRECONDITION: an Append or Combine of a key that collects
	// the parts of a Gather, or a Gather of a key that has a value.
	ValueKindMismatch Reason = "VALUE_KIND_MISMATCH"
	// NotANumber: FAILED_PRECONDITION: a Combine of a value that is not a number as
	// Combine writes it.
	NotANumber Reason = "NOT_A_NUMBER"
	// NumberOverflow: FAILED_PRECONDITION: the sum is not a 64-bit number.
	NumberOverflow Reason = "NUMBER_OVERFLOW"
	// GatherMismatch: FAILED_PRECONDITION: the key collects parts for a Gather that
	// expects others.
	GatherMismatch Reason = "GATHER_MISMATCH"
	// PartExists: ALREADY_EXISTS: the key has a part of that name, with another value.
	PartExists Reason = "PART_EXISTS"

	// ResumePointTrimmed: OUT_OF_RANGE: events behind the resume token are no longer
	// retained. Metadata: namespace, lost.
	ResumePointTrimmed Reason = "RESUME_POINT_TRIMMED"
	// ResumePointAhead: OUT_OF_RANGE: the log has not come to the resume token. Metadata:
	// namespace.
	ResumePointAhead Reason = "RESUME_POINT_AHEAD"
	// LogChanged: FAILED_PRECONDITION: the resume token is of another log. Metadata:
	// namespace.
	LogChanged Reason = "LOG_CHANGED"
	// MaxWatchers: RESOURCE_EXHAUSTED: limits.max_watchers.
	MaxWatchers Reason = "MAX_WATCHERS"
	// MaxExpiringWatchers: RESOURCE_EXHAUSTED: the namespace has 256 WatchExpiring streams.
	MaxExpiringWatchers Reason = "MAX_EXPIRING_WATCHERS"
	// EventNotUnsettled: NOT_FOUND: no such event waits to be settled.
	EventNotUnsettled Reason = "EVENT_NOT_UNSETTLED"
	// StaleAttempt: FAILED_PRECONDITION: the event has been given to another member.
	StaleAttempt Reason = "STALE_ATTEMPT"
	// GroupNotFound: NOT_FOUND: no such group.
	GroupNotFound Reason = "GROUP_NOT_FOUND"

	// NamespaceExists: ALREADY_EXISTS.
	NamespaceExists Reason = "NAMESPACE_EXISTS"
	// MaxNamespaces: RESOURCE_EXHAUSTED: limits.max_namespaces.
	MaxNamespaces Reason = "MAX_NAMESPACES"
	// GroupExists: ALREADY_EXISTS.
	GroupExists Reason = "GROUP_EXISTS"
	// MaxGroups: RESOURCE_EXHAUSTED: 64 groups in a namespace.
	MaxGroups Reason = "MAX_GROUPS"
	// NoJournal: FAILED_PRECONDITION: the server keeps no journal, so there is nothing to
	// back up.
	NoJournal Reason = "NO_JOURNAL"
	// MaxBackups: RESOURCE_EXHAUSTED: two backups are under way.
	MaxBackups Reason = "MAX_BACKUPS"

	// UnknownService: NOT_FOUND: the server has no such service, or reflection no such
	// symbol.
	UnknownService Reason = "UNKNOWN_SERVICE"
	// MaxHealthWatches: RESOURCE_EXHAUSTED: watches of health.
	MaxHealthWatches Reason = "MAX_HEALTH_WATCHES"
)
