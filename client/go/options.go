package timecache

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// The options of the operations. Which option goes with which operation is known to the
// compiler; each option's comment says it.
type (
	// PutOption: TTL, ExpireAt, AllowPast, IfAbsent, IfPresent, IfVersion, ReturnPrevious,
	// KeepDeadline, IdempotencyID, TraceEntry, EntryTraceparent.
	PutOption interface {
		option
		forPut()
	}
	// GetOption: WithTouch, WithoutTouch.
	GetOption interface {
		option
		forGet()
	}
	// RemoveOption: IfVersion, ReturnPrevious, IdempotencyID.
	RemoveOption interface {
		option
		forRemove()
	}
	// ContainsOption: IfAbsent, IfPresent, IfVersion.
	ContainsOption interface {
		option
		forContains()
	}
	// TouchOption: TTL, NamespaceTTL, ExpireAt, AllowPast, IfVersion.
	TouchOption interface {
		option
		forTouch()
	}
	// AppendOption: TTL, IfAbsent, IfPresent, IfVersion, WithTouch, IdempotencyID, TraceEntry,
	// EntryTraceparent.
	AppendOption interface {
		option
		forAppend()
	}
	// CombineOption: TTL, IfVersion, WithTouch, Initial, RemoveIfZero, IdempotencyID, TraceEntry,
	// EntryTraceparent.
	CombineOption interface {
		option
		forCombine()
	}
	// GatherOption: TTL, WithTouch, KeepFirst, Remember, IdempotencyID, TraceEntry,
	// EntryTraceparent.
	GatherOption interface {
		option
		forGather()
	}
	// ExecuteOption: Atomic, TraceEntry.
	ExecuteOption interface {
		option
		forExecute()
	}
	// SeekOption: DropUnsettled.
	SeekOption interface {
		option
		forSeek()
	}
	// PutBackOption: TTL, ExpireAt, AllowPast.
	PutBackOption interface {
		option
		forPutBack()
	}
	// ScanOption: Prefix, KeysOnly.
	ScanOption interface {
		option
		forScan()
	}
	// DescribeOption: IncludeStatistics.
	DescribeOption interface {
		option
		forDescribe()
	}
	// CallOption goes with every call, but not with an operation of a batch: RequestID,
	// Traceparent, Repeatable, Batching.
	CallOption interface {
		PutOption
		GetOption
		RemoveOption
		ContainsOption
		TouchOption
		AppendOption
		CombineOption
		GatherOption
		ExecuteOption
		SeekOption
		ScanOption
		DescribeOption
		UpdateOption
		forCall()
	}

	option interface{ set(*settings) }
)

// settings is what options say, of all kinds.
type settings struct {
	ttl            *durationpb.Duration
	expireAt       *timestamppb.Timestamp
	allowPast      bool
	condition      pb.PutCondition
	ifVersion      *uint64
	preconditions  int // IfAbsent, IfPresent and IfVersion that were given.
	returnPrevious bool
	keepDeadline   bool
	touch          bool
	withoutTouch   bool
	namespaceTTL   bool
	keepFirst      bool
	idempotencyID  []byte
	remember       *durationpb.Duration
	initial        int64
	removeIfZero   bool
	prefix         string
	keysOnly       bool
	statistics     bool
	toDefault      []string
	metadata       []string // Keys and values.
	repeatable     bool
	batching       *bool // Nil: as the client's options say.
	atomic         bool
	dropUnsettled  bool
	traceparent    string
	traceEntry     *bool // Nil: as the client's options say.

	tracedOperations []*bool // Of a batch, by operation.
}

func collect[Option option](options []Option) *settings {
	var s settings
	for _, option := range options {
		option.set(&s)
	}
	return &s
}

// conflict says that options exclude each other: one would win silently.
func (s *settings) conflict() error {
	if s.preconditions > 1 {
		return invalid("give one of IfAbsent, IfPresent and IfVersion")
	}
	return nil
}

// TTL is an entry's own time to live: 1 ms to the namespace's max_ttl. Without it a Put gives
// the namespace's, a Touch and a PutBack the entry's own if it has one, else the namespace's.
// Zero or negative is an InvalidArgument. With Append, Combine and Gather it counts for an
// entry that is created, and with WithTouch for one that is there. For Put, Touch, PutBack,
// Append, Combine, Gather.
type TTL time.Duration

func (t TTL) set(s *settings) { s.ttl = durationpb.New(time.Duration(t)) }
func (TTL) forPut()           {}
func (TTL) forTouch()         {}
func (TTL) forAppend()        {}
func (TTL) forCombine()       {}
func (TTL) forGather()        {}
func (TTL) forPutBack()       {}

// ExpireAt is the deadline of this life, in place of now and the time to live: a due date.
// After now, and no later than now + max_ttl; a part of a microsecond is rounded up. A TTL
// beside it is what a later renewal gives; without one, after a Put, that is the namespace's.
// For Put, Touch, PutBack.
type ExpireAt time.Time

func (e ExpireAt) set(s *settings) { s.expireAt = timestamppb.New(time.Time(e)) }
func (ExpireAt) forPut()           {}
func (ExpireAt) forTouch()         {}
func (ExpireAt) forPutBack()       {}

// PastOption is [AllowPast].
type PastOption bool

// AllowPast: an ExpireAt that is over is no error: the entry expires at once, and its event
// is delivered. For Put, Touch, PutBack.
const AllowPast PastOption = true

func (p PastOption) set(s *settings) { s.allowPast = bool(p) }
func (PastOption) forPut()           {}
func (PastOption) forTouch()         {}
func (PastOption) forPutBack()       {}

// Condition is [IfAbsent] or [IfPresent].
type Condition int

const (
	// IfAbsent: only if the key is not there; else FailedPrecondition, KeyExists. For Put,
	// Append, Contains.
	IfAbsent = Condition(pb.PutCondition_PUT_CONDITION_IF_ABSENT)
	// IfPresent: only if the key is there; else FailedPrecondition, KeyNotFound. For Put,
	// Append, Contains.
	IfPresent = Condition(pb.PutCondition_PUT_CONDITION_IF_PRESENT)
)

func (c Condition) set(s *settings) {
	s.condition = pb.PutCondition(c)
	s.preconditions++
}
func (Condition) forPut()      {}
func (Condition) forAppend()   {}
func (Condition) forContains() {}

// IfVersion: only if the key is there with this version; else FailedPrecondition,
// KeyNotFound or VersionMismatch. Not together with IfAbsent or IfPresent. For Put, Remove,
// Touch, Append, Combine, Contains.
type IfVersion uint64

func (v IfVersion) set(s *settings) {
	s.ifVersion = new(uint64(v))
	s.preconditions++
}
func (IfVersion) forPut()      {}
func (IfVersion) forRemove()   {}
func (IfVersion) forTouch()    {}
func (IfVersion) forAppend()   {}
func (IfVersion) forCombine()  {}
func (IfVersion) forContains() {}

// PreviousOption is [ReturnPrevious].
type PreviousOption bool

// ReturnPrevious: answer with the entry that was replaced or removed. For Put, Remove.
const ReturnPrevious PreviousOption = true

func (p PreviousOption) set(s *settings) { s.returnPrevious = bool(p) }
func (PreviousOption) forPut()           {}
func (PreviousOption) forRemove()        {}

// KeepOption is [KeepDeadline].
type KeepOption bool

// KeepDeadline: an entry that is there keeps its put time, deadline and own time to live.
// Not together with TTL. For Put.
const KeepDeadline KeepOption = true

func (k KeepOption) set(s *settings) { s.keepDeadline = bool(k) }
func (KeepOption) forPut()           {}

// RenewOption is [WithTouch].
type RenewOption bool

// WithTouch: renew the time to live of an entry that is there. For Get, Append, Combine,
// Gather.
const WithTouch RenewOption = true

func (r RenewOption) set(s *settings) { s.touch = bool(r) }
func (RenewOption) forGet()           {}
func (RenewOption) forAppend()        {}
func (RenewOption) forCombine()       {}
func (RenewOption) forGather()        {}

// IdempotencyID makes a call safe to repeat, so that it is tried again as [RetryPolicy] says:
// 1 to 64 B that no other call has. The namespace must have an IdempotencyWindow. Not together
// with ReturnPrevious. For Put, Remove, Append, Combine, Gather.
type IdempotencyID string

func (i IdempotencyID) set(s *settings) { s.idempotencyID = []byte(i) }
func (IdempotencyID) forPut()           {}
func (IdempotencyID) forRemove()        {}
func (IdempotencyID) forAppend()        {}
func (IdempotencyID) forCombine()       {}
func (IdempotencyID) forGather()        {}

// TraceEntryOption is [TraceEntry].
type TraceEntryOption bool

// TraceEntry: what this call stores keeps the call's traceparent, that of [Options.Tracing] or of
// [Traceparent], if it has one; the event has it, too. TraceEntryOption(false): it does not, in
// spite of [Options.TraceEntries]. Append, Combine and Gather set it only of what they create.
// For Put, Append, Combine, Gather, also in a batch, and for all operations of an Execute.
const TraceEntry TraceEntryOption = true

func (t TraceEntryOption) set(s *settings) { s.traceEntry = new(bool(t)) }
func (TraceEntryOption) forPut()           {}
func (TraceEntryOption) forAppend()        {}
func (TraceEntryOption) forCombine()       {}
func (TraceEntryOption) forGather()        {}
func (TraceEntryOption) forExecute()       {}

// EntryTraceparent is a traceparent that the entry keeps in place of the call's: W3C's form of
// version 00, 55 characters. For Put, Append, Combine, Gather.
type EntryTraceparent string

func (t EntryTraceparent) set(s *settings) { s.traceparent = string(t) }
func (EntryTraceparent) forPut()           {}
func (EntryTraceparent) forAppend()        {}
func (EntryTraceparent) forCombine()       {}
func (EntryTraceparent) forGather()        {}

// AtomicOption is [Atomic].
type AtomicOption bool

// Atomic: all operations or none. If one fails, its result says why, and each of the others has
// the error Aborted (NotApplied). At most 128 operations, 1 MiB in all, each on a key of its own:
// else InvalidArgument (InvalidField). For Execute.
const Atomic AtomicOption = true

func (a AtomicOption) set(s *settings) { s.atomic = bool(a) }
func (AtomicOption) forExecute()       {}

// DropOption is [DropUnsettled].
type DropOption bool

// DropUnsettled: events before the position that are not settled are dropped, those that were not
// delivered yet included. For SeekGroup.
const DropUnsettled DropOption = true

func (d DropOption) set(s *settings) { s.dropUnsettled = bool(d) }
func (DropOption) forSeek()          {}

// KeepFirstOption is [KeepFirst].
type KeepFirstOption bool

// KeepFirst: a part that has been collected with another value stays, and this one is a
// duplicate. For Gather.
const KeepFirst KeepFirstOption = true

func (k KeepFirstOption) set(s *settings) { s.keepFirst = bool(k) }
func (KeepFirstOption) forGather()        {}

// Remember is how long a key that this part completes takes no parts again, 1 ms to the
// namespace's max_ttl: until then a Gather is an AlreadyExists, GatherComplete. For Gather.
type Remember time.Duration

func (r Remember) set(s *settings) { s.remember = durationpb.New(time.Duration(r)) }
func (Remember) forGather()        {}

// KeepLifeOption is [WithoutTouch].
type KeepLifeOption bool

// WithoutTouch: do not renew the time to live, in a sliding namespace, either. For Get.
const WithoutTouch KeepLifeOption = true

func (k KeepLifeOption) set(s *settings) { s.withoutTouch = bool(k) }
func (KeepLifeOption) forGet()           {}

// NamespaceTTLOption is [NamespaceTTL].
type NamespaceTTLOption bool

// NamespaceTTL: the entry has no time to live of its own any more, and follows the
// namespace's. Not together with TTL. For Touch.
const NamespaceTTL NamespaceTTLOption = true

func (n NamespaceTTLOption) set(s *settings) { s.namespaceTTL = bool(n) }
func (NamespaceTTLOption) forTouch()         {}

// Initial is what a key that is not there counts as: 0 without it. For Combine.
type Initial int64

func (i Initial) set(s *settings) { s.initial = int64(i) }
func (Initial) forCombine()       {}

// ZeroOption is [RemoveIfZero].
type ZeroOption bool

// RemoveIfZero: remove the entry if the result is 0; nothing is created then, either. For
// Combine.
const RemoveIfZero ZeroOption = true

func (z ZeroOption) set(s *settings) { s.removeIfZero = bool(z) }
func (ZeroOption) forCombine()       {}

// Prefix: only keys that begin with this, of at most 4 KiB. For Scan.
type Prefix string

func (p Prefix) set(s *settings) { s.prefix = string(p) }
func (Prefix) forScan()          {}

// KeysOption is [KeysOnly].
type KeysOption bool

// KeysOnly: leave the values out. For Scan.
const KeysOnly KeysOption = true

func (k KeysOption) set(s *settings) { s.keysOnly = bool(k) }
func (KeysOption) forScan()          {}

// StatisticsOption is [IncludeStatistics].
type StatisticsOption bool

// IncludeStatistics: describe with statistics, too; those of a namespace lock each of its
// shards for a moment. For GetNamespace, ListNamespaces, GetGroup, ListGroups.
const IncludeStatistics StatisticsOption = true

func (i StatisticsOption) set(s *settings) { s.statistics = bool(i) }
func (StatisticsOption) forDescribe()      {}

type callOption func(*settings)

func (c callOption) set(s *settings) { c(s) }
func (callOption) forPut()           {}
func (callOption) forGet()           {}
func (callOption) forRemove()        {}
func (callOption) forContains()      {}
func (callOption) forTouch()         {}
func (callOption) forAppend()        {}
func (callOption) forCombine()       {}
func (callOption) forGather()        {}
func (callOption) forExecute()       {}
func (callOption) forSeek()          {}
func (callOption) forScan()          {}
func (callOption) forDescribe()      {}
func (callOption) forCall()          {}

// RequestID stands in the server's log lines about the call, and in its error: 1 to 128 graphic
// ASCII characters.
func RequestID(id string) CallOption {
	return callOption(func(s *settings) { s.metadata = append(s.metadata, "x-request-id", id) })
}

// Traceparent is a W3C trace context, which stands in the server's log lines, too. Other
// metadata goes with the context: metadata.AppendToOutgoingContext.
func Traceparent(traceparent string) CallOption {
	return callOption(func(s *settings) { s.metadata = append(s.metadata, "traceparent", traceparent) })
}

// Repeatable: try this call again, too, as [RetryPolicy] says, though it is not safe in
// general: a Put, say, that nobody else competes with.
func Repeatable() CallOption {
	return callOption(func(s *settings) { s.repeatable = true })
}

// Batching says for one call whether it may share a stream, or a request, with others, in place
// of [Options.Batching]. It changes nothing for calls that never do, such as Execute and Scan.
func Batching(on bool) CallOption {
	return callOption(func(s *settings) { s.batching = &on })
}
