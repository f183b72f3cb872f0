"""Why a call was refused. Written by client/python/generate from errors.proto."""

import enum


class ErrorReason(str, enum.Enum):
    """The reasons of google.rpc.ErrorInfo: what TimecacheError.reason may be.

    Members are strings: ``error.reason == ErrorReason.KEY_EXISTS``. A later server may have more
    of them; ``reason`` is then a string that is not here.
    """

    # --- Any call.

    # INVALID_ARGUMENT: a field is malformed or out of its range; a
    # google.rpc.BadRequest names it.
    INVALID_FIELD = "INVALID_FIELD"
    # INVALID_ARGUMENT: the bytes do not parse as the method's request message.
    MALFORMED_REQUEST = "MALFORMED_REQUEST"
    # INVALID_ARGUMENT: the request is too large, and no single field is the cause.
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    # NOT_FOUND: no such namespace.
    NAMESPACE_NOT_FOUND = "NAMESPACE_NOT_FOUND"
    # UNAVAILABLE: the server is being stopped.
    DRAINING = "DRAINING"
    # UNIMPLEMENTED: no such method.
    UNKNOWN_METHOD = "UNKNOWN_METHOD"
    # UNAUTHENTICATED: the call has neither a client certificate nor a token.
    NO_CREDENTIALS = "NO_CREDENTIALS"
    # UNAUTHENTICATED: no principal has this certificate.
    UNKNOWN_CERTIFICATE = "UNKNOWN_CERTIFICATE"
    # UNAUTHENTICATED: no principal has this token.
    UNKNOWN_TOKEN = "UNKNOWN_TOKEN"
    # UNAUTHENTICATED: the metadata "authorization" is no bearer token.
    MALFORMED_CREDENTIALS = "MALFORMED_CREDENTIALS"
    # PERMISSION_DENIED. Metadata: principal, namespace, verb.
    ACCESS_DENIED = "ACCESS_DENIED"
    # RESOURCE_EXHAUSTED: the namespace has reached its max_operations_per_second; a
    # google.rpc.RetryInfo says when to retry.
    MAX_OPERATION_RATE = "MAX_OPERATION_RATE"
    # RESOURCE_EXHAUSTED: the client of the connection does not read its responses fast
    # enough, or all clients together do not.
    UNREAD_RESPONSES = "UNREAD_RESPONSES"
    # INTERNAL or UNKNOWN: a bug of the server.
    INTERNAL_ERROR = "INTERNAL_ERROR"

    # --- Data.

    # FAILED_PRECONDITION: the key exists.
    KEY_EXISTS = "KEY_EXISTS"
    # FAILED_PRECONDITION: the key does not exist.
    KEY_NOT_FOUND = "KEY_NOT_FOUND"
    # FAILED_PRECONDITION: the entry has another version.
    VERSION_MISMATCH = "VERSION_MISMATCH"
    # RESOURCE_EXHAUSTED: the namespace's max_entries.
    MAX_ENTRIES = "MAX_ENTRIES"
    # RESOURCE_EXHAUSTED: the namespace's max_bytes.
    MAX_BYTES = "MAX_BYTES"
    # RESOURCE_EXHAUSTED: the server's limits.max_entries.
    SERVER_MAX_ENTRIES = "SERVER_MAX_ENTRIES"
    # RESOURCE_EXHAUSTED: the server's limits.max_bytes.
    SERVER_MAX_BYTES = "SERVER_MAX_BYTES"
    # RESOURCE_EXHAUSTED: limits.max_memory_bytes, or the process's own limit.
    MAX_MEMORY = "MAX_MEMORY"
    # RESOURCE_EXHAUSTED: 12 million entries in one shard.
    SHARD_FULL = "SHARD_FULL"
    # RESOURCE_EXHAUSTED: an operation's entry does not fit into the response of its
    # batch.
    MAX_RESPONSE_BYTES = "MAX_RESPONSE_BYTES"
    # DEADLINE_EXCEEDED: the client of a scan did not read for
    # limits.max_call_duration. Only in the server's log and metrics: to a client that
    # does not read, the server cannot send details.
    MAX_CALL_DURATION = "MAX_CALL_DURATION"
    # RESOURCE_EXHAUSTED: the disk of the server's journal has no room for a change in a
    # namespace of durability ASYNC or SYNC. Reads, deaths and watches go on; changes
    # succeed again once there is room.
    DISK_FULL = "DISK_FULL"
    # RESOURCE_EXHAUSTED: too many bytes wait for the journal's disk; a
    # google.rpc.RetryInfo says when to retry.
    JOURNAL_BACKLOG = "JOURNAL_BACKLOG"
    # FAILED_PRECONDITION: an Append, Combine or Gather would make the value larger
    # than the namespace's max_value_bytes. (A value or part that is too large by
    # itself is INVALID_FIELD.)
    VALUE_TOO_LARGE = "VALUE_TOO_LARGE"
    # FAILED_PRECONDITION: an Append or Combine of a key that collects the parts of a
    # Gather, or a Gather of a key that has a value.
    VALUE_KIND_MISMATCH = "VALUE_KIND_MISMATCH"
    # FAILED_PRECONDITION: a Combine of a value that is not a number as Combine writes it.
    NOT_A_NUMBER = "NOT_A_NUMBER"
    # FAILED_PRECONDITION: the sum is not a 64-bit number.
    NUMBER_OVERFLOW = "NUMBER_OVERFLOW"
    # FAILED_PRECONDITION: the key collects parts for a Gather that expects others.
    GATHER_MISMATCH = "GATHER_MISMATCH"
    # ALREADY_EXISTS: the key has a part of that name, with another value.
    PART_EXISTS = "PART_EXISTS"

    # --- Watches and consumer groups.

    # OUT_OF_RANGE: events after the resume token are no longer retained. Metadata:
    # namespace, lost.
    RESUME_POINT_TRIMMED = "RESUME_POINT_TRIMMED"
    # OUT_OF_RANGE: the log has not reached the resume token. Metadata: namespace.
    RESUME_POINT_AHEAD = "RESUME_POINT_AHEAD"
    # FAILED_PRECONDITION: the resume token is of another log. Metadata: namespace.
    LOG_CHANGED = "LOG_CHANGED"
    # RESOURCE_EXHAUSTED: limits.max_watchers.
    MAX_WATCHERS = "MAX_WATCHERS"
    # RESOURCE_EXHAUSTED: the namespace has 256 WatchExpiring streams.
    MAX_EXPIRING_WATCHERS = "MAX_EXPIRING_WATCHERS"
    # NOT_FOUND: no such event waits to be settled.
    EVENT_NOT_UNSETTLED = "EVENT_NOT_UNSETTLED"
    # FAILED_PRECONDITION: the event has been delivered to another member.
    STALE_ATTEMPT = "STALE_ATTEMPT"
    # NOT_FOUND: no such group.
    GROUP_NOT_FOUND = "GROUP_NOT_FOUND"

    # --- Administration.

    # ALREADY_EXISTS.
    NAMESPACE_EXISTS = "NAMESPACE_EXISTS"
    # RESOURCE_EXHAUSTED: limits.max_namespaces.
    MAX_NAMESPACES = "MAX_NAMESPACES"
    # ALREADY_EXISTS.
    GROUP_EXISTS = "GROUP_EXISTS"
    # RESOURCE_EXHAUSTED: 64 groups in a namespace.
    MAX_GROUPS = "MAX_GROUPS"
    # FAILED_PRECONDITION: the server keeps no journal, so there is nothing to back up.
    NO_JOURNAL = "NO_JOURNAL"
    # RESOURCE_EXHAUSTED: two backups are in progress.
    MAX_BACKUPS = "MAX_BACKUPS"

    # --- grpc.health.v1 and grpc.reflection.

    # NOT_FOUND: the server has no such service, or reflection no such symbol.
    UNKNOWN_SERVICE = "UNKNOWN_SERVICE"
    # Not given any more: too many watches of health.
    MAX_HEALTH_WATCHES = "MAX_HEALTH_WATCHES"
