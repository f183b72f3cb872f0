package timecache

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// PipelineOptions bound what is in flight: what has been added, and whose callback has not
// returned. 0: the default.
type PipelineOptions struct {
	// BatchOperations is the most operations of one request: 1 to MaxOperations. Default
	// 256.
	BatchOperations int
	// BatchBytes is the most bytes of them, up to about MaxRequestBytes; a larger operation
	// goes alone. Default 1 MiB.
	BatchBytes int
	// RequestsInFlight is the most requests that were sent and are not answered. Default
	// 16.
	RequestsInFlight int
	// OperationsInFlight is the most operations in flight. Default 8,192.
	OperationsInFlight int
	// BytesInFlight is the most bytes of them; a larger operation goes alone. Default
	// 8 MiB.
	BytesInFlight int
}

// Pipeline is a stream of operations on one namespace, and of their results: the fastest
// way to the server.
//
// Operations are done in the order in which they were added, each succeeds or fails by
// itself, and their callbacks come in that order. They are grouped into requests: what has
// been added is sent when nothing is in flight, when it makes a full request, or by Flush.
//
// The callback of every operation that was taken is called exactly once: with its result,
// or, when the stream ends before, with the stream's error; whether it was done is then
// unknown. The stream ends by Close, by its context, or by itself: when the server stops
// (Unavailable), when the namespace does not exist (NotFound), when the connection breaks,
// when no answer comes within the client's timeout (DeadlineExceeded), when a callback ends
// its goroutine (runtime.Goexit, as a test's FailNow does; Aborted). It goes on to the owner of a
// cluster where a node that is not the owner refuses it; and where the connection breaks or the
// server stops, if all of its operations so far are safe to repeat: then it sends again what was
// not answered, as often as [RetryPolicy] says for one call. Otherwise it does not come back:
// whoever wants to go on makes a new one.
//
// Callbacks run one at a time, on a goroutine of the pipeline's. They must be quick, and
// may call Flush, but nothing that waits. Safe for concurrent use; memory is bounded by the
// options. Must be closed, or its context cancelled: it has two goroutines.
type Pipeline struct {
	client    *Client
	options   PipelineOptions
	namespace string
	timeout   time.Duration
	stream    pipelineStream
	failover  failover
	span      TracedSpan
	// Of the stream, for what is stored.
	traceparent string
	// Touched by the receiving goroutine alone: attempts that are left, and their pauses.
	attempts int
	pauses   pauses
	cancel   context.CancelCauseFunc
	ctx      context.Context
	ended    chan struct{} // Closed when the last callback has returned.

	mu         sync.Mutex
	changed    sync.Cond
	filling    *message
	sealed     []*message
	sent       []*message
	delivering []*message // Touched by the receiving goroutine alone.
	operations int        // In flight.
	bytes      int
	watchdog   *time.Timer
	ticking    bool
	answering  bool // Callbacks run: no answer is read meanwhile.
	closing    bool
	unsafe     bool // There was an operation that may not be done twice.
	broken     bool // Nothing is sent any more.
	err        error
	done       bool
}

type pipelineStream = grpc.BidiStreamingClient[pb.ExecuteRequest, pb.ExecuteResponse]

// maxBatchBytes leaves room in a request for the namespace's name.
const maxBatchBytes = MaxRequestBytes - 128

// A request, and its callbacks.
type message struct {
	request   *pb.ExecuteRequest
	done      []func(Result)
	bytes     int
	results   []*pb.OperationResult // Nil: it was not answered.
	delivered int                   // How many of done were called.
}

// Pipeline begins a stream. That there is no server is the error of the first operations.
func (c *Client) Pipeline(ctx context.Context, options PipelineOptions, call ...CallOption) *Pipeline {
	atLeast := func(value *int, fallback int) {
		if *value <= 0 {
			*value = fallback
		}
	}
	atLeast(&options.BatchOperations, 256)
	options.BatchOperations = min(options.BatchOperations, MaxOperations)
	atLeast(&options.BatchBytes, 1<<20)
	options.BatchBytes = min(options.BatchBytes, maxBatchBytes)
	atLeast(&options.RequestsInFlight, 16)
	atLeast(&options.OperationsInFlight, 8192)
	atLeast(&options.BytesInFlight, 8<<20)
	p := &Pipeline{client: c, options: options, namespace: c.options.Namespace, timeout: c.options.Timeout,
		filling: &message{}, ended: make(chan struct{}), failover: c.conn.failover()}
	p.changed.L = &p.mu
	s := collect(call)
	ctx, p.span = c.startCall(ctx, pb.TimeCacheService_Pipeline_FullMethodName, &pb.ExecuteRequest{Namespace: p.namespace})
	p.ctx, p.cancel = context.WithCancelCause(s.outgoing(ctx))
	p.traceparent = traceparentOf(p.ctx)
	p.beginAttempts()
	if p.timeout > 0 {
		p.watchdog = time.AfterFunc(p.timeout, p.expire)
		p.watchdog.Stop()
	}
	if err := p.open(); err != nil {
		p.end(newError(err, nil))
		p.finish()
		return p
	}
	go p.receive()
	return p
}

// open begins the stream, for the first time or anew: what was sent is to be sent again.
func (p *Pipeline) open() error {
	stream, err := p.client.cache.Pipeline(p.ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.stream = stream
	p.sent, p.sealed = nil, slices.Concat(p.sent, p.sealed)
	p.changed.Broadcast()
	p.mu.Unlock()
	go p.send(stream)
	return nil
}

func (p *Pipeline) beginAttempts() {
	retry := p.client.options.Retry
	p.attempts, p.pauses = retry.MaxAttempts, pauses{min: retry.MinPause, max: retry.MaxPause}
}

// reopens says whether the stream goes on elsewhere or anew: the node is not the owner, and one
// that loses the ownership answers what it has read, and does no more; or the stream broke, and
// all may be done again.
func (p *Pipeline) reopens(failure *Error) bool {
	if failure.Reason == NotOwner {
		return p.failover.again(p.ctx, failure, false)
	}
	p.mu.Lock()
	isRepeatable := !p.unsafe && !(p.closing && p.operations == 0)
	p.mu.Unlock()
	p.attempts--
	return isRepeatable && p.attempts > 0 && p.client.mayComeBack(failure) && p.ctx.Err() == nil &&
		sleep(p.ctx, p.pauses.next())
}

// Add takes an operation; waits for room. With an error it was not taken, and done is not
// called: InvalidArgument (the pipeline goes on), FailedPrecondition (after Close), or why
// the stream has ended. Done may be nil.
func (p *Pipeline) Add(operation Operation, done func(Result)) error {
	return p.add(context.Background(), operation, done)
}

// add stops waiting when the context ends and p.changed is broadcast.
func (p *Pipeline) add(ctx context.Context, operation Operation, done func(Result)) error {
	if operation.err != nil {
		return operation.err
	}
	if operation.request == nil {
		return invalid("the operation is none")
	}
	wantsTrace := p.client.options.TraceEntries
	if operation.trace != nil {
		wantsTrace = *operation.trace
	}
	if wantsTrace && p.traceparent != "" {
		operation.request = withTraceparent(operation.request, p.traceparent)
	}
	// With its tag and its length.
	bytes := proto.Size(operation.request) + 6
	if bytes > maxBatchBytes {
		return invalid("the operation has %d bytes; at most %d fit into a request", bytes, maxBatchBytes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil && !p.done && !p.closing && !p.hasRoom(bytes) {
		p.changed.Wait()
	}
	if ctx.Err() != nil {
		return newError(ctx.Err(), nil)
	}
	if p.err != nil {
		return p.err
	}
	if p.closing || p.done {
		return &Error{Code: codes.FailedPrecondition, Message: "the pipeline is closed"}
	}
	if p.filling.bytes+bytes > p.options.BatchBytes {
		p.seal()
	}
	if p.filling.request == nil {
		p.filling.request = &pb.ExecuteRequest{Namespace: p.namespace}
	}
	p.filling.request.Operations = append(p.filling.request.Operations, operation.request)
	p.filling.done = append(p.filling.done, done)
	p.filling.bytes += bytes
	p.operations++
	p.bytes += bytes
	p.unsafe = p.unsafe || !isSafe(operation.request)
	full := len(p.filling.done) >= p.options.BatchOperations || p.filling.bytes >= p.options.BatchBytes
	if full || len(p.sent)+len(p.sealed) == 0 {
		p.seal()
	}
	p.tick()
	return nil
}

// Do adds an operation and waits for its result, whose Err is why there is none: Canceled or
// DeadlineExceeded when the context ends first; whether the operation was or will be done is
// then unknown.
func (p *Pipeline) Do(ctx context.Context, operation Operation) Result {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	answer := make(chan Result, 1)
	if err := p.add(ctx, operation, func(result Result) { answer <- result }); err != nil {
		return Result{Err: err}
	}
	p.Flush()
	select {
	case result := <-answer:
		return result
	case <-ctx.Done():
		return Result{Err: newError(ctx.Err(), nil)}
	}
}

// Flush sends what has been added.
func (p *Pipeline) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seal()
}

// Wait sends what has been added, and waits until all callbacks have returned. Returns why the
// stream has ended, if it has.
func (p *Pipeline) Wait() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seal()
	for !p.done && p.operations > 0 {
		p.changed.Wait()
	}
	return p.err
}

// Close ends the stream in good order: takes no more, waits as Wait does, and for the
// server's word. Nil: each operation was answered. May be called again.
func (p *Pipeline) Close() error {
	p.mu.Lock()
	p.closing = true
	p.seal()
	p.changed.Broadcast()
	p.tick()
	p.mu.Unlock()
	<-p.ended
	return p.err
}

func (p *Pipeline) hasRoom(bytes int) bool {
	return p.operations == 0 ||
		p.operations < p.options.OperationsInFlight && p.bytes+bytes <= p.options.BytesInFlight
}

// seal ends the message that is being filled.
func (p *Pipeline) seal() {
	if len(p.filling.done) == 0 {
		return
	}
	p.sealed = append(p.sealed, p.filling)
	p.filling = &message{}
	p.changed.Broadcast()
}

// tick lets the watchdog run while an answer is waited for.
func (p *Pipeline) tick() {
	waiting := !p.done && !p.answering && (p.operations > 0 || p.closing)
	if p.watchdog == nil || waiting == p.ticking {
		return
	}
	if p.ticking = waiting; waiting {
		p.watchdog.Reset(p.timeout)
	} else {
		p.watchdog.Stop()
	}
}

func (p *Pipeline) expire() {
	p.cancel(&Error{Code: codes.DeadlineExceeded, Message: fmt.Sprintf("no answer within %v", p.timeout)})
}

// send writes the messages.
func (p *Pipeline) send(stream pipelineStream) {
	for {
		p.mu.Lock()
		for p.stream == stream && !p.broken && !(p.closing && p.operations == 0) &&
			(len(p.sealed) == 0 || len(p.sent) >= p.options.RequestsInFlight) {
			p.changed.Wait()
		}
		if p.stream != stream || p.broken || len(p.sealed) == 0 {
			p.mu.Unlock()
			break
		}
		next := p.sealed[0]
		p.sealed = p.sealed[1:]
		p.sent = append(p.sent, next)
		p.mu.Unlock()
		// A write that fails is followed by the read that says why.
		if stream.Send(next.request) != nil {
			break
		}
	}
	stream.CloseSend()
}

// receive reads the answers and delivers them.
func (p *Pipeline) receive() {
	returned := false
	defer func() {
		if returned {
			return
		}
		if cause := recover(); cause != nil {
			panic(cause)
		}
		// A callback has ended the goroutine. Another one goes on behind it.
		p.cancel(&Error{Code: codes.Aborted, Message: "callback of a pipeline: " + errGoexit.Error(), cause: errGoexit})
		go p.receive()
	}()
	for p.deliver(); p.read(); p.deliver() {
	}
	p.deliver() // What was not answered.
	p.finish()
	returned = true
}

// read takes the next answer, or the end, as what is to be delivered next. False: it was the end.
func (p *Pipeline) read() bool {
	if p.broken {
		return false
	}
	response, err := p.stream.Recv()
	if err != nil {
		failure := p.failure(err)
		for failure != nil && p.reopens(failure) {
			p.span.Retry(failure)
			err := p.open()
			if err == nil {
				return true
			}
			failure = p.client.failure(err, nil)
		}
		p.end(failure)
		return false
	}
	p.mu.Lock()
	if len(p.sent) == 0 || len(p.sent[0].done) != len(response.Results) {
		p.mu.Unlock()
		p.cancel(unlike("another number of results than there were operations"))
		p.end(newError(context.Cause(p.ctx), nil))
		return false
	}
	defer p.mu.Unlock()
	answered := p.sent[0]
	answered.results = response.Results
	p.failover = p.client.conn.failover()
	p.beginAttempts()
	p.sent = p.sent[1:]
	if len(p.sent)+len(p.sealed) == 0 {
		p.seal()
	}
	p.delivering = append(p.delivering, answered)
	p.answering = true
	p.tick()
	p.changed.Broadcast()
	return true
}

// deliver calls the callbacks of what was answered, or will not be.
func (p *Pipeline) deliver() {
	for len(p.delivering) > 0 {
		one := p.delivering[0]
		for one.delivered < len(one.done) {
			i := one.delivered
			one.delivered++ // Also if the callback does not return.
			if one.done[i] != nil {
				one.done[i](p.result(one, i))
			}
		}
		p.delivering = p.delivering[1:]
		p.mu.Lock()
		p.operations -= len(one.done)
		p.bytes -= one.bytes
		p.answering = len(p.delivering) > 0
		p.tick() // From anew.
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

func (p *Pipeline) result(of *message, i int) Result {
	if of.results == nil {
		return Result{Err: p.err}
	}
	return toResult(of.request.Operations[i], of.results[i])
}

// failure is why a stream ended; nil: in good order.
func (p *Pipeline) failure(err error) *Error {
	p.mu.Lock()
	isDone := p.closing && p.operations == 0
	p.mu.Unlock()
	if err == io.EOF && isDone {
		return nil
	}
	return p.client.endOf(p.stream, err)
}

// endOf is why a stream ended that should not.
func (c *Client) endOf(stream grpc.ClientStream, err error) *Error {
	if err == io.EOF {
		return &Error{Code: codes.Unavailable, Message: "the server ended the stream", MaybeApplied: true}
	}
	return c.failure(err, stream.Trailer())
}

// end says why the stream has ended, which is the error of what was not answered. Nil: it ended
// in good order.
func (p *Pipeline) end(failure *Error) {
	if cause, ok := context.Cause(p.ctx).(*Error); ok {
		failure = cause
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.seal()
	var err error
	if failure != nil {
		err = failure
	}
	p.delivering = append(p.sent, p.sealed...)
	p.sent, p.sealed = nil, nil
	p.answering = len(p.delivering) > 0
	p.err = err
	p.closing = true // Nothing is taken from here on.
	p.tick()
	p.changed.Broadcast()
}

// finish wakes all that wait for the last callback.
func (p *Pipeline) finish() {
	p.mu.Lock()
	p.done = true
	p.tick()
	p.changed.Broadcast()
	p.mu.Unlock()
	p.cancel(nil)
	p.span.End(p.err)
	close(p.ended)
}
