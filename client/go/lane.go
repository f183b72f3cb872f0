package timecache

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// sharedCall is a plain call on a stream. One goroutine waits for it. Guarded by the lane's mu
// until it is answered.
type sharedCall struct {
	operation *pb.Operation
	bytes     int
	done      chan struct{} // Gets one value with the answer or failure.
	timer     *time.Timer

	stream  *sharedStream // It was sent on; nil: it is queued.
	answers uint64        // Of the lane, when it was queued.
	left    bool          // Nobody waits any more.

	answer  *pb.OperationResult
	failure *Error
}

// Calls whose answer came; others may still be used by the stream.
var sharedCallPool = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &sharedCall{done: make(chan struct{}, 1), timer: timer}
}}

// sharedMessage is a request of a stream, and whose operations it has.
type sharedMessage struct {
	calls    []*sharedCall
	bytes    int
	sentAt   time.Time
	sending  bool // Whether gRPC takes it is not known yet.
	answered bool
}

// lane collects the calls of one namespace and sends them on a stream, which it opens with the
// first one, and anew when it has ended. A call is sent at once if fewer messages than
// maxSharedMessages or maxFarMessages are under way; otherwise all that come meanwhile go as one
// message.
type lane struct {
	client    *Client
	namespace string
	closed    atomic.Bool
	used      atomic.Int64 // When it was last idle, in Unix nanoseconds.

	encoding sync.Mutex // Held while operations are encoded. Behind mu.

	mu       sync.Mutex
	queue    []*sharedCall // Not sent. Each has a goroutine that waits: they bound it.
	sending  bool          // A goroutine opens a stream, or sends.
	isShared bool          // The last message had several calls.
	stream   *sharedStream // Nil: none, or it has ended.
	answers  uint64        // That have come.
}

// sharedStream is one stream of a lane. Guarded by its mu.
type sharedStream struct {
	lane   *lane
	stream *clusterStream
	ctx    context.Context
	cancel context.CancelCauseFunc
	id     string // In the server's log lines, where a call has none of its own.
	opened time.Time

	sent    []*sharedMessage // Not answered.
	bytes   int              // Of them.
	waiting int              // Calls of them that have not left.
	isUsed  bool             // gRPC has taken a message; or the stream was given up.
	answers bool             // An answer has come.
	isFar   bool             // By the answers before those counted now.
	counted int
	// Of the answers that are counted now.
	shortest time.Duration
	failure  *Error // Why it has ended.
}

// do waits until a call has its answer or failure; or returns why it does not wait any longer:
// its context has ended, or the timeout, if that is above 0.
func (l *lane) do(ctx context.Context, call *sharedCall, timeout time.Duration) *Error {
	l.mu.Lock()
	if l.closed.Load() {
		l.mu.Unlock()
		return errLaneClosed
	}
	call.answers = l.answers
	l.queue = append(l.queue, call)
	l.kick()
	var expired <-chan time.Time
	if timeout > 0 {
		call.timer.Reset(timeout)
		expired = call.timer.C
	}
	var err error
	select {
	case <-call.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-expired:
		err = context.DeadlineExceeded
	}
	if timeout > 0 {
		call.timer.Stop()
	}
	if err != nil {
		isSent := l.leave(call, err == context.DeadlineExceeded)
		select {
		case <-call.done: // It was answered meanwhile.
		default:
			failure := newError(err, nil)
			failure.MaybeApplied = isSent
			return failure
		}
	}
	return nil
}

var (
	errLaneClosed   = &Error{Code: codes.Aborted}
	errClientClosed = &Error{Code: codes.Canceled, Message: "the client is closed", MaybeApplied: true}
)

// leave takes a call from the queue, or leaves its answer to nobody. Says whether it was sent.
func (l *lane) leave(call *sharedCall, isTimeout bool) bool {
	l.mu.Lock()
	s := call.stream
	if call.answer != nil || call.failure != nil {
		l.mu.Unlock()
		return true
	}
	call.left = true
	if s != nil {
		s.waiting--
	} else if i := slices.Index(l.queue, call); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	if isTimeout && l.answers == call.answers && (s == nil || s == l.stream) {
		l.giveUp()
	}
	s.release()
	l.kick()
	if s == nil {
		return false
	}
	l.encoding.Lock() // The call may be among what is being encoded.
	l.encoding.Unlock()
	return true
}

// giveUp leaves a server that has not answered for as long as a call waited; calls that are under
// way keep its stream until they have left. With mu.
func (l *lane) giveUp() {
	cluster, s := l.client.conn, l.stream
	node := cluster.current.Load()
	if s != nil {
		node = s.stream.node
		l.stream, s.isUsed = nil, true
		s.release()
	}
	cluster.moveOn(context.Background(), node, &Error{Code: codes.DeadlineExceeded})
}

// release ends a stream that was given up and that no call waits for. With mu.
func (s *sharedStream) release() {
	if s != nil && s.lane.stream != s && s.waiting == 0 {
		s.cancel(nil)
	}
}

// kick sends what is queued, if that is not done already and a message may be sent. With mu,
// which it unlocks.
func (l *lane) kick() {
	if l.sending || len(l.queue) == 0 || l.stream != nil && !l.stream.hasRoom() {
		l.mu.Unlock()
		return
	}
	l.sending = true
	isUnblocked := l.stream != nil && l.stream.bytes < maxUnblockedBytes
	yields := l.isShared
	l.mu.Unlock()
	if isUnblocked {
		l.send(yields)
	} else {
		go func() {
			l.open()
			l.send(yields)
		}()
	}
}

func (s *sharedStream) hasRoom() bool {
	most := maxSharedMessages
	if s.isFar {
		most = maxFarMessages
	}
	return s.failure == nil && len(s.sent) < most
}

// countAnswer learns from an answer how far the server is. With mu.
func (s *sharedStream) countAnswer(took time.Duration) {
	if s.counted == 0 || took < s.shortest {
		s.shortest = took
	}
	if s.counted++; s.counted == sharedAnswers {
		s.isFar, s.counted = s.shortest >= farAnswer, 0
	}
}

// open begins a stream, unless there is one. What is queued fails if none can be begun.
func (l *lane) open() {
	l.mu.Lock()
	has := l.stream != nil
	l.mu.Unlock()
	if has {
		return
	}
	for {
		s, err := l.begin()
		l.mu.Lock()
		if err != nil {
			l.failQueue(l.client.failure(err, nil))
			l.mu.Unlock()
			return
		}
		if s.stream.node != l.client.conn.current.Load() && !l.closed.Load() { // It was given up meanwhile.
			l.mu.Unlock()
			s.cancel(nil)
			continue
		}
		l.stream = s
		if l.closed.Load() {
			s.cancel(errClientClosed)
		}
		l.mu.Unlock()
		go s.receive()
		return
	}
}

func (l *lane) begin() (*sharedStream, error) {
	s := &sharedStream{lane: l, opened: time.Now(), id: strconv.FormatUint(rand.Uint64()|1<<63, 16)}
	s.ctx, s.cancel = context.WithCancelCause(metadata.NewOutgoingContext(context.Background(), metadata.Pairs("x-request-id", s.id)))
	stream, err := l.client.conn.NewStream(s.ctx, &pb.TimeCacheService_ServiceDesc.Streams[0],
		pb.TimeCacheService_Pipeline_FullMethodName, grpc.StaticMethod(), grpc.MaxCallRecvMsgSize(MaxMessageBytes))
	if err != nil {
		s.cancel(nil)
		return nil, err
	}
	s.stream = stream.(*clusterStream)
	return s, nil
}

// send sends one message.
func (l *lane) send(yields bool) {
	if yields {
		runtime.Gosched() // Calls that are ready to be made go with it.
	}
	l.mu.Lock()
	s := l.stream
	if s == nil || !s.hasRoom() || len(l.queue) == 0 {
		l.sending = false
		if s == nil { // It has ended since.
			l.kick()
		} else {
			l.mu.Unlock()
		}
		return
	}
	message, request := l.take(s)
	l.encoding.Lock()
	l.mu.Unlock()
	err := l.write(s, request)
	l.mu.Lock()
	l.sending, message.sending = false, false
	s.isUsed = s.isUsed || err == nil
	switch {
	case message.answered:
	case err != nil:
		l.unsend(s, message)
	case s.failure != nil:
		l.unanswered(s, message)
	}
	l.kick()
}

// write encodes a request and sends it. With l.encoding, which it unlocks once the operations are
// not read any more: what they refer to is then the callers' again.
func (l *lane) write(s *sharedStream, request *pb.ExecuteRequest) error {
	encoded := &grpc.PreparedMsg{}
	if encoded.Encode(s.stream, request) != nil { // A connection that is not gRPC's.
		defer l.encoding.Unlock()
		return s.stream.SendMsg(request)
	}
	l.encoding.Unlock()
	return s.stream.SendMsg(encoded)
}

// take makes a message of what is queued. With mu.
func (l *lane) take(s *sharedStream) (*sharedMessage, *pb.ExecuteRequest) {
	count, bytes := 0, 0
	for count < len(l.queue) && count < MaxOperations && (count == 0 || bytes+l.queue[count].bytes <= maxSharedMessageBytes) {
		bytes += l.queue[count].bytes
		count++
	}
	message := &sharedMessage{calls: l.queue[:count:count], bytes: bytes, sentAt: time.Now(), sending: true}
	l.queue = l.queue[count:]
	if len(l.queue) == 0 {
		l.queue = make([]*sharedCall, 0, count)
	}
	request := &pb.ExecuteRequest{Namespace: l.namespace, Independent: true, Operations: make([]*pb.Operation, count)}
	for i, call := range message.calls {
		request.Operations[i] = call.operation
		call.stream = s
	}
	s.sent = append(s.sent, message)
	s.bytes += bytes
	s.waiting += count
	l.isShared = count > 1
	return message, request
}

// unsend queues again what gRPC did not take: the stream has ended, and its receiver knows why,
// or will. With mu.
func (l *lane) unsend(s *sharedStream, message *sharedMessage) {
	if i := slices.Index(s.sent, message); i >= 0 {
		s.sent = slices.Delete(s.sent, i, i+1)
	}
	l.queueAgain(message)
	if s.failure == nil {
		s.failure = &Error{}
	} else if !s.isUsed {
		l.failQueue(s.failure)
	}
}

func (l *lane) queueAgain(message *sharedMessage) {
	var again []*sharedCall
	for _, call := range message.calls {
		if !call.left {
			call.stream = nil
			again = append(again, call)
		}
	}
	l.queue = append(again, l.queue...)
}

// unanswered fails the calls of a message that was sent on a stream that has ended. Where the
// server has ended it between two answers, as on a connection that is old, it has not applied
// them: they go on, on another stream. With mu.
func (l *lane) unanswered(s *sharedStream, message *sharedMessage) {
	if s.failure.Reason == Draining && s.answers {
		l.queueAgain(message)
		return
	}
	fail(message.calls, s.failure, s.id)
}

// failQueue: no stream could be begun that takes a message. With mu.
func (l *lane) failQueue(failure *Error) {
	own := *failure
	own.MaybeApplied = false
	fail(l.queue, &own, "")
	l.queue = nil
}

// receive reads the answers to the end of the stream.
func (s *sharedStream) receive() {
	for {
		response := new(pb.ExecuteResponse)
		err := s.stream.RecvMsg(response)
		if err != nil {
			s.end(s.lane.client.endOf(s.stream, err))
			return
		}
		l := s.lane
		l.mu.Lock()
		if len(s.sent) == 0 || len(s.sent[0].calls) != len(response.Results) {
			l.mu.Unlock()
			s.end(unlike("another number of results than there were operations"))
			return
		}
		message := s.sent[0]
		message.answered = true
		s.sent = s.sent[1:]
		s.bytes -= message.bytes
		l.answers++
		s.answers = true
		s.countAnswer(time.Since(message.sentAt))
		for i, call := range message.calls {
			call.answer = response.Results[i]
			if !call.left {
				s.waiting--
			}
			call.done <- struct{}{}
		}
		if len(s.sent) == 0 && len(l.queue) == 0 {
			l.used.Store(time.Now().UnixNano())
		}
		s.release()
		l.kick()
	}
}

// end fails what was sent and not answered. What was not sent goes on, on another stream.
func (s *sharedStream) end(failure *Error) {
	l := s.lane
	if cause, is := context.Cause(s.ctx).(*Error); is {
		failure = cause
	} else if failure.Code == codes.Canceled && s.ctx.Err() == nil && !l.client.conn.isClosed() {
		// A server that stops ends streams so; no caller has cancelled anything.
		failure = &Error{Code: codes.Unavailable, Message: "the server ended the stream", MaybeApplied: true}
	}
	s.cancel(nil)
	if failure.Code == codes.Unimplemented {
		l.client.streams.unaryUntil.Store(time.Now().Add(withoutPipeline).UnixNano())
	}
	l.mu.Lock()
	s.failure = failure
	if l.stream == s {
		l.stream = nil
	}
	isBeingSent := false
	for _, message := range slices.Backward(s.sent) {
		if message.sending {
			isBeingSent = true // Its sender sees to it.
		} else {
			l.unanswered(s, message)
		}
	}
	s.sent = nil
	if failure.Code == codes.Unimplemented || !s.isUsed && !isBeingSent {
		l.failQueue(failure)
	}
	l.kick()
}

// fail answers calls with their own copies of a failure; id: that of the stream, if they were
// sent. With mu.
func fail(calls []*sharedCall, failure *Error, id string) {
	for _, call := range calls {
		own := *failure
		if id != "" {
			own.RequestID = cmp.Or(call.operation.RequestId, own.RequestID, id)
		}
		call.failure = &own
		call.done <- struct{}{}
	}
}

// close ends a lane, if it is idle or that is forced. Says whether it did.
func (l *lane) close(force bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isBusy := l.sending || len(l.queue) > 0 || l.stream != nil && l.stream.waiting > 0
	if isBusy && !force {
		return false
	}
	l.closed.Store(true)
	l.failQueue(errClientClosed)
	if l.stream != nil {
		l.stream.cancel(errClientClosed)
	}
	return true
}
