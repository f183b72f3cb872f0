package timecache

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// Entry is a live entry.
type Entry struct {
	// Key has 1 B to 4 KiB.
	Key string
	// Value is empty where only keys were asked for.
	Value []byte
	// OmittedValueBytes is, in a scan, the size of a value that was left out because the
	// entry does not fit into a message. Otherwise 0.
	OmittedValueBytes uint64
	// Version stands for the value: a renewed time to live leaves it as it is. Unique in
	// the namespace; grows with every change of one key. Never 0.
	Version uint64
	// PutTime is when the time to live last began: the last put or touch.
	PutTime time.Time
	// Deadline is PutTime and the time to live. The entry does not die before it, and at
	// most one bucket width, ttl / (num_buckets - 1), after it.
	Deadline time.Time
	// Parts are there in place of a value where the key collects those of a Gather.
	Parts *GatheredParts
	// CreateTime is when the key began to be there: changes and renewals keep it. The zero
	// time from an older server.
	CreateTime time.Time
	// OwnTTL is the entry's own time to live, which a renewal gives it again. 0: it has the
	// namespace's.
	OwnTTL time.Duration
}

// JSON decodes the value into what v points to.
func (e *Entry) JSON(v any) error { return json.Unmarshal(e.Value, v) }

// GatheredParts is what Gather has collected under a key.
type GatheredParts struct {
	// Parts are in the order in which they came. Names are distinct.
	Parts []Part
	// Expected is what completes the key.
	Expected Expectation
}

// Part is one part of what Gather has collected.
type Part struct {
	// Name has 1 to 256 B.
	Name string
	// Value has 0 B to what the namespace's max_value_bytes leaves for it.
	Value []byte
}

// PutResult is what a Put did.
type PutResult struct {
	// Version is the new entry's.
	Version uint64
	// Previous is the replaced entry, if there was one and ReturnPrevious was given.
	Previous *Entry
}

// RemoveResult is what a Remove did.
type RemoveResult struct {
	// Removed says whether the key was there.
	Removed bool
	// Previous is the removed entry, if there was one and ReturnPrevious was given.
	Previous *Entry
}

// AppendResult is what an Append did.
type AppendResult struct {
	// Version is the entry's new one.
	Version uint64
	// ValueBytes is the value's new length.
	ValueBytes uint64
	// Created says whether the key was not there.
	Created bool
}

// CombineResult is what a Combine came to.
type CombineResult struct {
	// Result is the new value.
	Result int64
	// Version is the entry's new one; 0 if it was removed.
	Version uint64
	// Created says whether the key was not there, and is now.
	Created bool
	// Removed says whether it is not there now, as the result was 0.
	Removed bool
}

// GatherResult is what a Gather came to.
type GatherResult struct {
	// Parts are all of them, if this was the last one: the key is gone then.
	Parts *GatheredParts
	// Version is the entry's; 0 if it is complete.
	Version uint64
	// Count is how many parts are in.
	Count int
	// Duplicate says whether the part was in, with this value.
	Duplicate bool
}

// SizeResult is what a namespace holds.
type SizeResult struct {
	// Entries are the live ones, Bytes those of their keys and values.
	Entries, Bytes uint64
}

// Operand is what Combine does with the value and a number: [Add] or [Xor].
type Operand struct {
	xor    bool
	number int64
}

// Add adds a number.
func Add(number int64) Operand { return Operand{number: number} }

// Xor is the exclusive or with a number, both in two's complement.
func Xor(number int64) Operand { return Operand{xor: true, number: number} }

// Expectation is what completes a key of Gather, the same for all of its parts:
// [PartCount] or [PartNames]. A part after the first may leave it empty.
type Expectation struct {
	// Count is how many parts, whatever their names. 0 where Names says it.
	Count int
	// Names are the names of the parts; in an answer in bytewise order.
	Names []string
}

// PartCount expects so many parts, 1 to 1,024, whatever their names.
func PartCount(count int) Expectation { return Expectation{Count: count} }

// PartNames expects the parts of these names: 1 to 1,024 distinct ones of 1 to 256 B, in
// any order.
func PartNames(names ...string) Expectation { return Expectation{Names: names} }

// Put stores a value under a key, with a fresh time to live. A condition that does not hold
// is a FailedPrecondition; a limit that would be passed, ResourceExhausted.
func (c *Client) Put(ctx context.Context, key string, value []byte, options ...PutOption) (PutResult, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Put_FullMethodName, s.put(key, value), s)
	return PutResult{result.Version, result.Entry}, result.Err
}

// PutJSON stores what v is as JSON. See [Entry.JSON].
func (c *Client) PutJSON(ctx context.Context, key string, v any, options ...PutOption) (PutResult, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return PutResult{}, err
	}
	return c.Put(ctx, key, value, options...)
}

// Get reads an entry; found is false on a miss. It does not renew the time to live, unless
// the namespace is sliding or WithTouch is given; with WithoutTouch it never does.
func (c *Client) Get(ctx context.Context, key string, options ...GetOption) (entry Entry, found bool, err error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Get_FullMethodName, s.get(key), s)
	if result.Entry != nil {
		return *result.Entry, true, nil
	}
	return Entry{}, false, result.Err
}

// Remove removes an entry, which makes no expiry event. A miss is no error, but a
// FailedPrecondition with IfVersion.
func (c *Client) Remove(ctx context.Context, key string, options ...RemoveOption) (RemoveResult, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Remove_FullMethodName, s.remove(key), s)
	return RemoveResult{result.Found, result.Entry}, result.Err
}

// Contains says whether an entry is there. Never renews its time to live. With a condition one
// that does not hold is a FailedPrecondition: for an Execute that is [Atomic].
func (c *Client) Contains(ctx context.Context, key string, options ...ContainsOption) (bool, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Contains_FullMethodName, s.contains(key), s)
	return result.Found, result.Err
}

// Size counts the live entries of the namespace, and their bytes; exact.
func (c *Client) Size(ctx context.Context, options ...CallOption) (SizeResult, error) {
	request := &pb.SizeRequest{Namespace: c.options.Namespace}
	response, err := call[pb.SizeResponse](ctx, c, pb.TimeCacheService_Size_FullMethodName, request, collect(options), safe)
	return SizeResult{response.GetEntries(), response.GetBytes()}, err
}

// Touch gives an entry a fresh time to live, its own again or that of TTL, and returns its version, which stays as it is.
// On a miss found is false; with IfVersion a miss is a FailedPrecondition.
func (c *Client) Touch(ctx context.Context, key string, options ...TouchOption) (version uint64, found bool, err error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Touch_FullMethodName, s.touchRequest(key), s)
	return result.Version, result.Found, result.Err
}

// Append appends to a value, or creates an entry with these bytes. An entry that is there
// keeps its deadline. FailedPrecondition: a condition that does not hold, a value that
// would be too large (ValueTooLarge), a key that collects parts (ValueKindMismatch).
func (c *Client) Append(ctx context.Context, key string, value []byte, options ...AppendOption) (AppendResult, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Append_FullMethodName, s.append(key, value), s)
	return AppendResult{result.Version, uint64(result.Number), result.Created}, result.Err
}

// Combine adds a number to a value, or xors it with one, atomically. The value is a decimal
// number of 64 bits, as a Put of "10" stores it. An entry that is there keeps its deadline.
// FailedPrecondition: a value that is no number (NotANumber), a sum that has no room
// (NumberOverflow), IfVersion that does not hold, a key that collects parts.
func (c *Client) Combine(ctx context.Context, key string, operand Operand, options ...CombineOption) (CombineResult, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Combine_FullMethodName, s.combine(key, operand), s)
	return CombineResult{result.Number, result.Version, result.Created, result.Removed}, result.Err
}

// Gather brings one part of what is collected under a key. Whoever brings the last one gets
// all, and the key is gone: exactly one caller does. What does not become complete expires
// with the parts that came. An entry that is there keeps its deadline. The same part again
// is no error; with another value: AlreadyExists (PartExists). FailedPrecondition:
// something else is expected under this key (GatherMismatch), it has a value
// (ValueKindMismatch), or the parts would be too large (ValueTooLarge).
func (c *Client) Gather(ctx context.Context, key, part string, value []byte, expected Expectation,
	options ...GatherOption) (GatherResult, error) {
	s := collect(options)
	result := c.do(ctx, pb.TimeCacheService_Gather_FullMethodName, s.gather(key, part, value, expected), s)
	return GatherResult{result.Parts, result.Version, int(result.Number), result.Duplicate}, result.Err
}

// Scan goes through the live entries, in no particular order. One that lives through the
// whole scan comes exactly once, another at most once. Holds one page (1,000 entries, about
// 1 MiB) at a time. Where the connection breaks, or the server ends a scan that is read
// slowly, it goes on behind the last page that came, as [RetryPolicy] says; not over a
// restart of the server, which ends it. An error comes last. Has no deadline but the
// context's.
func (c *Client) Scan(ctx context.Context, options ...ScanOption) iter.Seq2[Entry, error] {
	s := collect(options)
	return func(yield func(Entry, error) bool) {
		request := &pb.ScanRequest{Namespace: c.options.Namespace, KeyPrefix: []byte(s.prefix),
			KeysOnly: s.keysOnly, MaxMessageBytes: new(uint32(MaxMessageBytes))}
		ctx, span := c.startCall(ctx, pb.TimeCacheService_Scan_FullMethodName, request)
		var end error
		defer func() { span.End(end) }()
		ctx, cancel := context.WithCancel(s.outgoing(ctx))
		defer cancel()
		retry := c.options.Retry
		attempts, begun := retry.MaxAttempts, false
		pauses := pauses{min: retry.MinPause, max: retry.MaxPause}
		for {
			failure, left := c.scanPages(ctx, request, func(page *pb.ScanResponse) bool {
				request.Position, begun = page.Position, true
				attempts = retry.MaxAttempts
				pauses.reset()
				for _, entry := range page.Entries {
					if !yield(*toEntry(entry, nil), nil) {
						return false
					}
				}
				return true
			})
			if left || failure == nil {
				return
			}
			attempts--
			// DeadlineExceeded: so the server ends a scan that is not read for a while.
			passes := c.mayComeBack(failure) || failure.throttled() ||
				failure.Code == codes.DeadlineExceeded || failure.Reason == UnreadResponses
			// An older server has no positions; from the beginning entries would come twice.
			if !passes || attempts <= 0 || begun && len(request.Position) == 0 || !sleep(ctx, pauses.next()) {
				end = failure
				yield(Entry{}, failure)
				return
			}
			span.Retry(failure)
		}
	}
}

// scanPages reads one stream to its end, and returns why it ended, if it was not over, or
// that the caller has left.
func (c *Client) scanPages(ctx context.Context, request *pb.ScanRequest, take func(*pb.ScanResponse) bool) (failure *Error, left bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.cache.Scan(ctx, request)
	if err != nil {
		return c.failure(err, nil), false
	}
	for {
		page, err := stream.Recv()
		if err == io.EOF {
			return nil, false
		}
		if err != nil {
			return c.failure(err, stream.Trailer()), false
		}
		if !take(page) {
			return nil, true
		}
	}
}

// The operations, as single calls and batches make them.

func (s *settings) put(key string, value []byte) *pb.Operation {
	request := &pb.PutRequest{Key: []byte(key), Value: value, Ttl: s.ttl,
		ReturnPrevious: s.returnPrevious, KeepDeadline: s.keepDeadline, ExpireAt: s.expireAt, AllowPast: s.allowPast,
		IdempotencyId: s.idempotencyID, Traceparent: s.traceparent}
	if s.ifVersion != nil {
		request.Precondition = &pb.PutRequest_IfVersion{IfVersion: *s.ifVersion}
	} else if s.condition != 0 {
		request.Precondition = &pb.PutRequest_Condition{Condition: s.condition}
	}
	return &pb.Operation{Request: &pb.Operation_Put{Put: request}}
}

func (s *settings) get(key string) *pb.Operation {
	request := &pb.GetRequest{Key: []byte(key)}
	if s.touch || s.withoutTouch {
		request.Touch = new(!s.withoutTouch)
	}
	return &pb.Operation{Request: &pb.Operation_Get{Get: request}}
}

func (s *settings) remove(key string) *pb.Operation {
	request := &pb.RemoveRequest{Key: []byte(key), IfVersion: s.ifVersion,
		ReturnPrevious: s.returnPrevious, IdempotencyId: s.idempotencyID}
	return &pb.Operation{Request: &pb.Operation_Remove{Remove: request}}
}

func (s *settings) contains(key string) *pb.Operation {
	request := &pb.ContainsRequest{Key: []byte(key)}
	if s.ifVersion != nil {
		request.Precondition = &pb.ContainsRequest_IfVersion{IfVersion: *s.ifVersion}
	} else if s.condition != 0 {
		request.Precondition = &pb.ContainsRequest_Condition{Condition: s.condition}
	}
	return &pb.Operation{Request: &pb.Operation_Contains{Contains: request}}
}

func (s *settings) touchRequest(key string) *pb.Operation {
	request := &pb.TouchRequest{Key: []byte(key), Ttl: s.ttl, IfVersion: s.ifVersion,
		ExpireAt: s.expireAt, AllowPast: s.allowPast, NamespaceTtl: s.namespaceTTL}
	return &pb.Operation{Request: &pb.Operation_Touch{Touch: request}}
}

func (s *settings) append(key string, value []byte) *pb.Operation {
	request := &pb.AppendRequest{Key: []byte(key), Value: value, Ttl: s.ttl,
		Touch: s.touch, IdempotencyId: s.idempotencyID, Traceparent: s.traceparent}
	if s.ifVersion != nil {
		request.Precondition = &pb.AppendRequest_IfVersion{IfVersion: *s.ifVersion}
	} else if s.condition != 0 {
		request.Precondition = &pb.AppendRequest_Condition{Condition: s.condition}
	}
	return &pb.Operation{Request: &pb.Operation_Append{Append: request}}
}

func (s *settings) combine(key string, operand Operand) *pb.Operation {
	request := &pb.CombineRequest{Key: []byte(key), Initial: s.initial,
		RemoveIfZero: s.removeIfZero, Touch: s.touch, Ttl: s.ttl, IfVersion: s.ifVersion,
		IdempotencyId: s.idempotencyID, Traceparent: s.traceparent}
	if operand.xor {
		request.Operand = &pb.CombineRequest_Xor{Xor: operand.number}
	} else {
		request.Operand = &pb.CombineRequest_Add{Add: operand.number}
	}
	return &pb.Operation{Request: &pb.Operation_Combine{Combine: request}}
}

func (s *settings) gather(key, part string, value []byte, expected Expectation) *pb.Operation {
	request := &pb.GatherRequest{Key: []byte(key), Part: []byte(part), Value: value,
		ExpectedParts: toUint32(expected.Count), Touch: s.touch, Ttl: s.ttl, KeepFirst: s.keepFirst,
		Remember: s.remember, IdempotencyId: s.idempotencyID, Traceparent: s.traceparent}
	for _, name := range expected.Names {
		request.ExpectedNames = append(request.ExpectedNames, []byte(name))
	}
	return &pb.Operation{Request: &pb.Operation_Gather{Gather: request}}
}

// toEntry takes an entry; what an operation answers may leave the key out.
func toEntry(entry *pb.Entry, key []byte) *Entry {
	if entry == nil {
		return nil
	}
	if len(entry.Key) > 0 {
		key = entry.Key
	}
	return &Entry{Key: string(key), Value: entry.Value, OmittedValueBytes: entry.OmittedValueBytes,
		Version: entry.Version, PutTime: toTime(entry.PutTime), Deadline: toTime(entry.Deadline),
		Parts: toParts(entry.Parts), CreateTime: toTime(entry.CreateTime), OwnTTL: entry.OwnTtl.AsDuration()}
}

func toParts(parts *pb.GatheredParts) *GatheredParts {
	if parts == nil {
		return nil
	}
	result := &GatheredParts{Expected: Expectation{Count: int(parts.ExpectedParts)}}
	for _, part := range parts.Parts {
		result.Parts = append(result.Parts, Part{string(part.Name), part.Value})
	}
	for _, name := range parts.ExpectedNames {
		result.Expected.Names = append(result.Expected.Names, string(name))
	}
	return result
}

// toTime takes a time; one that is unset is the zero time.
func toTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
