package timecache

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

const (
	// Of a client: one for each namespace. The longest idle is closed for another.
	maxSharedStreams = 64
	// A larger operation goes by its own RPC: no small one waits behind it.
	maxSharedBytes = 64 << 10
	// Of one message. Calls beyond it go with the next.
	maxSharedMessageBytes = 256 << 10
	// Messages that are sent and not answered, of one stream. With 1 a call may wait for a whole
	// round trip before it is sent; 4 cost 16 callers 5 % more CPU. A second stream costs them 20 %
	// more, and has no higher rate.
	maxSharedMessages = 2
	// The same of a server that is far, or that stores what it answers: as many as it stores
	// together. It is where the shortest of sharedAnswers took so long.
	maxFarMessages = 4
	farAnswer      = 2 * time.Millisecond
	sharedAnswers  = 64
	// While fewer bytes are under way, gRPC takes a message without waiting for the server:
	// any goroutine may send it, also the one that reads the answers.
	maxUnblockedBytes = 32 << 10
	// How long a server that has no Pipeline gets calls of their own.
	withoutPipeline = time.Minute
)

// sharedStreams are those of a client, one for each namespace that it calls. Safe for
// concurrent use.
type sharedStreams struct {
	unaryUntil atomic.Int64 // The server has no Pipeline; in Unix nanoseconds.

	mu    sync.Mutex
	lanes map[string]*lane
}

// lane returns that of the client's namespace; nil: all are busy with others.
func (s *sharedStreams) lane(c *Client) *lane {
	if found := c.lane.Load(); found != nil && !found.closed.Load() {
		return found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.lanes[c.options.Namespace]
	if found == nil {
		if len(s.lanes) >= maxSharedStreams && !s.closeIdle() {
			return nil
		}
		found = &lane{client: c, namespace: c.options.Namespace}
		s.lanes[found.namespace] = found
	}
	c.lane.Store(found)
	return found
}

// closeIdle makes room for another.
func (s *sharedStreams) closeIdle() bool {
	byUse := make([]*lane, 0, len(s.lanes))
	for _, one := range s.lanes {
		byUse = append(byUse, one)
	}
	slices.SortFunc(byUse, func(a, b *lane) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, one := range byUse {
		if one.close(false) {
			delete(s.lanes, one.namespace)
			return true
		}
	}
	return false
}

// close ends all streams, with what is under way.
func (s *sharedStreams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.lanes {
		one.close(true)
	}
	clear(s.lanes)
}

func (c *Client) batches(s *settings) bool {
	if s.batching != nil {
		return *s.batching
	}
	return c.options.Batching == nil || *c.options.Batching
}

// shares says whether an operation goes on the shared stream, and gives it what metadata would
// say in its own RPC.
func (c *Client) shares(ctx context.Context, operation *pb.Operation, s *settings) bool {
	if !c.batches(s) {
		return false
	}
	set := func(key, value string) bool {
		switch key {
		case "x-request-id":
			operation.RequestId = value
		case "traceparent":
			operation.Traceparent = value
		default:
			return key == "tracestate" // The server has no use for it.
		}
		return true
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	for key, values := range md {
		if len(values) > 0 && !set(key, values[0]) {
			return false
		}
	}
	for i := 0; i < len(s.metadata); i += 2 {
		set(s.metadata[i], s.metadata[i+1])
	}
	return bytesOf(operation) <= maxSharedBytes
}

// bytesOf is about an operation's size on the wire: what is exact costs as much as encoding it.
func bytesOf(operation *pb.Operation) int {
	bytes := 64 + len(operation.RequestId) + len(operation.Traceparent)
	switch o := operation.Request.(type) {
	case *pb.Operation_Put:
		bytes += len(o.Put.Key) + len(o.Put.Value)
	case *pb.Operation_Append:
		bytes += len(o.Append.Key) + len(o.Append.Value)
	case *pb.Operation_Gather:
		bytes += len(o.Gather.Key) + len(o.Gather.Part) + len(o.Gather.Value)
		for _, name := range o.Gather.ExpectedNames {
			bytes += len(name) + 2
		}
	case *pb.Operation_Get:
		bytes += len(o.Get.Key)
	default:
		bytes += proto.Size(operation)
	}
	return bytes
}

// errUnary: the operation goes by its own RPC. It was not applied.
var errUnary = &Error{Code: codes.Unimplemented}

// wantsUnary says whether what failed on a shared stream is to be done by its own RPC: the
// server has no Pipeline, or the answer has no room beside others.
func (e *Error) wantsUnary() bool {
	return e != nil && (e.Code == codes.Unimplemented || e.Reason == MaxResponseBytes)
}

// share does one attempt on the shared stream. It ends with its context, or after a timeout,
// if its context has no deadline. begun: when the stream was. No answer: the failure says why.
func (c *Client) share(ctx context.Context, operation *pb.Operation, timeout time.Duration) (
	answer *pb.OperationResult, begun time.Time, failure *Error) {
	if err := ctx.Err(); err != nil {
		failure := newError(err, nil)
		failure.MaybeApplied = false
		return nil, begun, failure
	}
	if until := c.streams.unaryUntil.Load(); until != 0 && time.Now().UnixNano() < until {
		return nil, begun, errUnary
	}
	if _, has := ctx.Deadline(); has {
		timeout = 0
	}
	call := sharedCallPool.Get().(*sharedCall)
	call.operation, call.bytes = operation, bytesOf(operation)
	for failure = errLaneClosed; failure == errLaneClosed; {
		lane := c.streams.lane(c)
		if lane == nil {
			return nil, begun, errUnary
		}
		failure = lane.do(ctx, call, timeout)
	}
	if failure != nil { // The stream may still use the call.
		return nil, begun, failure
	}
	id := ""
	if call.stream != nil {
		begun, id = call.stream.opened, call.stream.id
	}
	answer, failure = call.answer, call.failure
	call.operation, call.stream, call.answer, call.failure = nil, nil, nil, nil
	sharedCallPool.Put(call)
	if status := answer.GetError(); status != nil {
		if err := fromRPC(status); err != nil {
			failure := err.(*Error)
			failure.RequestID = cmp.Or(operation.RequestId, id)
			return nil, begun, failure
		}
	}
	return answer, begun, failure
}
