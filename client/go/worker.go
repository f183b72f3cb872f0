package timecache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Handler handles an event. Nil: it is done, and acknowledged. An error: it is given out
// again after WorkerOptions.RetryDelay, to this worker or another; [Action.Because] says
// otherwise. A panic is not recovered: it ends the program, and the event goes to another
// worker. One that ends its goroutine (runtime.Goexit, as a test's FailNow does) is as one
// that returns an error. The context has the values of Run's, and is cancelled when Run
// returns.
type Handler func(ctx context.Context, event *ExpiredEvent) error

// Because makes an error of an action, for a [Handler] to return:
//
//	return timecache.Nack(time.Minute).Because(err)
//
// The cause may be nil, where there is nothing to report.
func (a Action) Because(cause error) error { return &actionError{a, cause} }

type actionError struct {
	action Action
	cause  error
}

func (e *actionError) Error() string {
	what := map[actionKind]string{ack: "done", nack: "to be given out again", putBack: "put back",
		terminate: "given up", extend: "not done, but a worker extends by itself"}[e.action.kind]
	if e.cause == nil {
		return what
	}
	return what + ": " + e.cause.Error()
}

func (e *actionError) Unwrap() error { return e.cause }

// WorkerOptions of [Client.Worker]. 0: the default.
type WorkerOptions struct {
	// Start is where a group starts that is made by this.
	Start Start
	// KeysOnly: leave the values out.
	KeysOnly bool
	// Concurrency is how many handlers run at a time. Default 4. With 1, first attempts
	// are handled in order of death.
	Concurrency int
	// MaxInFlight is the most events that this worker holds, from their arrival until
	// they are settled, those that wait for a handler included: no other worker gets them
	// meanwhile. 1 to 65,536. Default: twice the Concurrency; more hides the round trip of
	// handlers that are quick. The Concurrency, where a handler takes long.
	MaxInFlight int
	// ExtendMax is for how long the worker keeps an event by asking for another ack
	// timeout again and again, from the event's arrival until it is settled. After that
	// the event is given out again an ack timeout later: the bound for a handler that
	// hangs. Default 12 h. Negative: it never asks.
	ExtendMax time.Duration
	// RetryDelay is that of the Nack for a handler's error, and for an action that the
	// server refuses. [GroupDelay]: as the group says. Default 1 s.
	RetryDelay time.Duration
	// StopTimeout is how long Run tries to settle once the last handler has returned.
	// Default 10 s.
	StopTimeout time.Duration
	// OnError is told what went wrong and was survived: a break, a handler's error, an
	// event that was handled and could not be settled, a settlement that the server did not
	// get. What is about one event is an [*EventError]. Called by one goroutine at a time.
	// Nil: it is logged by [slog.Default], as a warning with namespace, group, key and
	// attempt.
	OnError func(error)
	// OnLoss is told that the group lost so many events, as it held more than its
	// max_backlog_bytes. Called by one goroutine at a time.
	OnLoss func(lost uint64)
	// Reconnect is as in [WatchOptions]; OnBreak comes before OnError.
	Reconnect
}

// WorkerStats is what a worker has done since its start.
type WorkerStats struct {
	// Handled are handlers that have returned or ended their goroutine; Failed, of these,
	// those with an error that is no Action.
	Handled, Failed uint64
	// Acked, Nacked, PutBack and Terminated were settled so.
	Acked, Nacked, PutBack, Terminated uint64
	// Stale were settled too late: the event had been given to another member, or was
	// done.
	Stale uint64
	// Unsettled were not settled: refused, or not delivered. They are given out again.
	Unsettled uint64
	// Lost is the sum of what OnLoss was told.
	Lost uint64
	// Extended is how often it got another ack timeout for an event.
	Extended uint64
}

// EventError is what went wrong with one event of a worker.
type EventError struct {
	// What: "handler", or that the event was handled and how it could not be settled.
	What string
	// The event.
	Namespace, Group, Key string
	Attempt               uint32
	// Err is what the handler returned, or an [*Error].
	Err error
}

// Error says what, of which event, and why.
func (e *EventError) Error() string {
	return fmt.Sprintf("%s of namespace %q, group %q, key %q, attempt %d: %v",
		e.What, e.Namespace, e.Group, e.Key, e.Attempt, e.Err)
}

// Unwrap returns Err.
func (e *EventError) Unwrap() error { return e.Err }

// Worker is a member of a consumer group that calls a handler for each event it is given,
// and settles as the handler says.
//
// At least once. An event comes again, perhaps to another worker, when its handler failed,
// when it was not settled within the group's ack timeout, and when the connection broke
// before it was settled. Events of one key come one after the other, the later when the
// earlier is settled; only an event that timed out or whose connection broke can be with two
// workers at once. In one worker an event is never with two handlers at once.
//
// For what it holds, in a handler's hands or waiting for one, the worker asks for more time
// before a third of the ack timeout is over, up to WorkerOptions.ExtendMax.
//
// Reconnects by itself, as [Client.Watch] does; settlements are sent again until they
// arrive. A server that restarts without a journal has forgotten its groups, and what was
// unsettled in them: the worker goes on in the new group, with the oldest event that is
// retained.
type Worker struct {
	client  *Client // Without tracing: what it calls by itself is nobody's span.
	tracing Tracing // Nil: none.
	group   string
	handler Handler
	options WorkerOptions
	call    *settings
	outer   context.Context    // Run's.
	cancel  context.CancelFunc // Ends the stream.

	tell sync.Mutex // One callback at a time. Before mu.

	mu      sync.Mutex
	changed sync.Cond
	started bool
	// All that is not settled yet. What is given out again meanwhile is not handled twice.
	tasks    map[taskName]*task
	queue    []*task // Not begun.
	pending  []owed  // To be sent.
	stopping bool
	handlers int       // That have not ended.
	giveUp   time.Time // Settling, once stopped.
	err      error
	stats    WorkerStats
	done     bool // All is settled.

	extending extending
}

// taskName is what an event keeps in every delivery.
type taskName struct {
	version uint64
	key     string
}

func nameOf(event *ExpiredEvent) taskName { return taskName{event.Version, event.Key} }

// task is an event in a worker's hands, from its arrival until it is settled. Its fields are
// guarded by the worker's mu.
type task struct {
	event    ExpiredEvent // With the attempt, returns and token of the newest delivery.
	arrived  time.Time    // When it came first,
	extended time.Time    // and from when its ack timeout runs, at the earliest.
	// The server has said that this worker does not hold it any more.
	over bool
	// A Nack was said: what comes again is to be handled again.
	returned bool
}

// owed is a settlement that the server has not answered.
type owed struct {
	task   *task
	token  string
	action Action
}

// maxInFlight is the most events that the server lets a member hold.
const maxInFlight = 65_536

// Worker makes a member of a consumer group of the client's namespace; [Worker.Run] runs it.
// The group is made with default options if it is not there. RequestID and Traceparent go
// with its stream and its settlements, as does the metadata of Run's context; calls of a
// handler with its context bring only the latter. Repeatable changes nothing: settlements are
// sent until they arrive.
func (c *Client) Worker(group string, handler Handler, options WorkerOptions, call ...CallOption) *Worker {
	options.Concurrency = max(cmp.Or(options.Concurrency, 4), 1)
	options.MaxInFlight = cmp.Or(options.MaxInFlight, min(2*options.Concurrency, maxInFlight))
	options.RetryDelay = cmp.Or(options.RetryDelay, time.Second)
	options.StopTimeout = cmp.Or(options.StopTimeout, 10*time.Second)
	options.MinPause = cmp.Or(options.MinPause, 100*time.Millisecond)
	options.MaxPause = cmp.Or(options.MaxPause, time.Second)
	untraced := *c
	untraced.options.Tracing = nil
	w := &Worker{client: &untraced, tracing: c.options.Tracing, group: group, handler: handler, options: options, call: collect(call),
		tasks: map[taskName]*task{}, handlers: options.Concurrency,
		extending: extending{max: cmp.Or(options.ExtendMax, 12*time.Hour), ackTimeout: defaultAckTimeout}}
	w.changed.L = &w.mu
	return w
}

// Run works until the context ends, and then stops gracefully: begins no further event,
// waits for the handlers that run, settles what they said, and returns nil. What was given
// to this worker and not begun goes to others. Another end is an error: what ends a
// [Client.Watch], as no server at the first attempt or a namespace or group that is
// deleted; why settlements did not arrive within StopTimeout; that a callback of the
// options has ended its goroutine (runtime.Goexit). To be called once.
func (w *Worker) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return &Error{Code: codes.FailedPrecondition, Message: "the worker has run already"}
	}
	w.started = true
	w.outer = ctx
	w.mu.Unlock()

	// The stream stays open until the last handler is settled: with its end the server
	// gives out again what is not.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var stream context.Context
	stream, w.cancel = context.WithCancel(w.call.outgoing(inner))
	defer context.AfterFunc(ctx, w.stop)()

	var all sync.WaitGroup
	all.Go(func() { w.read(stream) })
	extending, endExtending := context.WithCancel(w.call.outgoing(inner))
	defer endExtending()
	all.Go(func() { w.extend(extending) })
	all.Go(func() {
		defer endExtending()
		w.settle(w.call.outgoing(inner))
	})
	for range w.options.Concurrency {
		all.Go(func() { w.handle(inner, &all) })
	}
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Stats says what the worker has done.
func (w *Worker) Stats() WorkerStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

func (w *Worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	w.changed.Broadcast()
}

// read fills the queue.
func (w *Worker) read(ctx context.Context) {
	defer w.stop()
	options := ConsumeOptions{Start: w.options.Start, MaxInFlight: w.options.MaxInFlight,
		KeysOnly: w.options.KeysOnly, Reconnect: w.options.Reconnect}
	options.OnBreak = func(err error) {
		if w.options.OnBreak != nil {
			w.callback(func() { w.options.OnBreak(err) })
		}
		w.loseUnbegun(err)
	}
	for batch, err := range w.client.Consume(ctx, w.group, options) {
		if err == nil {
			w.take(batch)
			continue
		}
		w.mu.Lock()
		if !w.stopping {
			w.err = err
		}
		w.mu.Unlock()
	}
}

// take waits until there is room for another batch.
func (w *Worker) take(batch *WatchBatch) {
	if batch.Lost > 0 && w.options.OnLoss != nil {
		w.callback(func() { w.options.OnLoss(batch.Lost) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.stats.Lost += batch.Lost
	for _, event := range batch.Events {
		if known := w.tasks[nameOf(&event)]; known != nil && !known.returned {
			known.event.Attempt, known.event.Returns = event.Attempt, event.Returns
			known.event.DeliveryToken = event.DeliveryToken
			known.extended, known.over = now, false
			continue
		}
		// After a stop they wait, too, and go to others when the stream ends.
		task := &task{event: event, arrived: now, extended: now}
		w.tasks[nameOf(&event)] = task
		w.queue = append(w.queue, task)
	}
	w.changed.Broadcast()
	for !w.stopping && len(w.tasks) >= w.options.MaxInFlight {
		w.changed.Wait()
	}
}

// loseUnbegun: with the stream's end the server has given them out again.
func (w *Worker) loseUnbegun(err error) {
	w.mu.Lock()
	for _, task := range w.queue {
		w.forget(task)
	}
	w.queue = nil
	if w.stopping {
		w.cancel() // What a new stream would bring is for others.
	}
	w.mu.Unlock()
	w.report(err)
}

// errGoexit is the error of a handler or callback that has not returned.
var errGoexit = errors.New("it has ended its goroutine")

// handle handles events until there is a stop.
func (w *Worker) handle(ctx context.Context, all *sync.WaitGroup) {
	var handling *task // In the handler's hands.
	stopped := false
	defer func() {
		if stopped {
			return
		}
		if cause := recover(); cause != nil {
			panic(cause)
		}
		// Another goroutine goes on in place of the one that was ended.
		all.Go(func() { w.handle(ctx, all) })
		if handling != nil {
			w.handled(handling, errGoexit)
		}
	}()
	for {
		w.mu.Lock()
		for !w.stopping && len(w.queue) == 0 {
			w.changed.Wait()
		}
		if w.stopping || w.outer.Err() != nil {
			w.handlers--
			w.giveUp = time.Now().Add(w.options.StopTimeout)
			w.changed.Broadcast()
			w.mu.Unlock()
			stopped = true
			return
		}
		task := w.queue[0]
		w.queue = w.queue[1:]
		event := task.event
		task.event.Value, task.event.Parts = nil, nil // They are the handler's, not kept for longer.
		w.mu.Unlock()
		handling = task
		err := w.callHandler(ctx, &event)
		handling = nil
		w.handled(task, err)
	}
}

// callHandler calls the handler, in a span of its own.
func (w *Worker) callHandler(ctx context.Context, event *ExpiredEvent) error {
	if w.tracing == nil {
		return w.handler(ctx, event)
	}
	ctx, end := w.tracing.StartHandler(ctx, w.group, event)
	err := errGoexit // Or a panic.
	defer func() {
		action, cause, _ := w.said(err)
		end(action, cause)
	}()
	err = w.handler(ctx, event)
	return err
}

// said is what a handler's error stands for: an action, and what is to be reported, if anything.
func (w *Worker) said(err error) (action Action, cause error, failed bool) {
	var said *actionError
	if errors.As(err, &said) && said.action.kind != extend {
		return said.action, said.cause, false
	}
	if err != nil {
		return Nack(w.options.RetryDelay), err, true
	}
	return Ack(), nil, false
}

// handled hands what the handler said to the settling goroutine.
func (w *Worker) handled(task *task, err error) {
	action, err, failed := w.said(err)
	w.mu.Lock()
	w.stats.Handled++
	if failed {
		w.stats.Failed++
	}
	w.pending = append(w.pending, w.owe(task, action))
	problem := w.eventError("handler", task, err)
	w.changed.Broadcast()
	w.mu.Unlock()
	if err != nil {
		w.report(problem)
	}
}

// eventError is about a task. With mu.
func (w *Worker) eventError(what string, task *task, err error) *EventError {
	return &EventError{what, task.event.Namespace, w.group, task.event.Key, task.event.Attempt, err}
}

// notSettled says that an event was handled, and is not settled as its handler has said.
// With mu.
func (w *Worker) notSettled(one owed, err error) *EventError {
	return w.eventError(fmt.Sprintf("handled, but not settled by %v: event", one.action), one.task, err)
}

// owe is a settlement of the newest delivery. With mu.
func (w *Worker) owe(task *task, action Action) owed {
	task.returned = action.kind == nack
	return owed{task, task.event.DeliveryToken, action}
}

func settlements(batch []owed) []Settlement {
	all := make([]Settlement, len(batch))
	for i, one := range batch {
		all[i] = Settlement{one.token, one.action}
	}
	return all
}

// settle sends what is pending: while a call is under way, the next one's settlements come
// together.
func (w *Worker) settle(ctx context.Context) {
	defer w.cancel()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = true
		w.changed.Broadcast()
	}()
	for {
		w.mu.Lock()
		for len(w.pending) == 0 && w.handlers > 0 {
			w.changed.Wait()
		}
		size := min(len(w.pending), MaxSettlements)
		batch := w.pending[:size:size]
		w.pending = w.pending[size:]
		w.mu.Unlock()
		if size == 0 {
			return
		}
		w.send(ctx, batch)
	}
}

func (w *Worker) send(ctx context.Context, batch []owed) {
	pauses := pauses{min: w.options.MinPause, max: w.options.MaxPause}
	for repeated := false; ; repeated = true {
		attempt, cancel := w.settleContext(ctx)
		begun := time.Now()
		results, err := w.client.Settle(attempt, w.group, settlements(batch), Batching(false))
		cancel()
		if err == nil {
			w.settled(batch, results, repeated)
			return
		}
		w.report(err)
		failure := newError(err, nil)
		// ResourceExhausted is of all of them: the journal's disk is full, or the
		// connection's responses are unread.
		mayPass := w.client.mayComeBack(failure) || errors.Is(err, context.DeadlineExceeded) ||
			failure.Code == codes.ResourceExhausted
		// Another token may come later, or has just come.
		hasOtherToken, unread := w.client.token.afterRefusal(begun, failure)
		mayPass = mayPass || hasOtherToken || unread != nil
		if mayPass && w.pause(pauses.next()) {
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, one := range batch {
			w.drop(one)
		}
		if w.err == nil && w.gaveUp() {
			w.err = err
		}
		return
	}
}

// settleContext: a stop waits for the call that is under way.
func (w *Worker) settleContext(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := DefaultTimeout
	if t := w.client.options.Timeout; t > 0 {
		timeout = min(t, timeout)
	}
	return context.WithTimeout(ctx, timeout)
}

// pause returns false if there is no time left for another attempt.
func (w *Worker) pause(pause time.Duration) bool {
	until := time.Now().Add(pause) // Not after the timer, which wakes once.
	timer := time.AfterFunc(pause, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.gaveUp() && time.Now().Before(until) {
		w.changed.Wait()
	}
	return !w.gaveUp()
}

// gaveUp says whether it is too late to settle. With mu.
func (w *Worker) gaveUp() bool { return w.handlers == 0 && time.Now().After(w.giveUp) }

// settled counts the server's answers, and settles anew what it refused.
func (w *Worker) settled(batch []owed, results []SettleResult, repeated bool) {
	var refused []error
	w.mu.Lock()
	var again []owed
	for i, one := range batch {
		err := results[i].Err
		done := errors.Is(err, EventNotUnsettled)
		stale := errors.Is(err, StaleAttempt)
		kind := one.action.kind
		switch {
		case err == nil, repeated && done: // An attempt that was not answered may have settled it.
			*[]*uint64{ack: &w.stats.Acked, nack: &w.stats.Nacked, putBack: &w.stats.PutBack,
				terminate: &w.stats.Terminated}[kind]++
		case stale && kind != nack && one.task.event.DeliveryToken != one.token:
			// Given to us again: nobody else would settle it.
			again = append(again, w.owe(one.task, one.action))
			continue
		case stale, done:
			w.stats.Stale++
			refused = append(refused, w.notSettled(one, err))
		default: // It did not like the action, or has no room for what is put back.
			refused = append(refused, w.notSettled(one, err))
			if retry := Nack(w.options.RetryDelay); kind != ack && one.action != retry {
				again = append(again, w.owe(one.task, retry))
				continue
			}
			w.drop(one)
			continue
		}
		w.forget(one.task)
	}
	w.pending = append(again, w.pending...)
	w.changed.Broadcast()
	w.mu.Unlock()
	for _, err := range refused {
		w.report(err)
	}
}

// drop gives a settlement up. With mu.
func (w *Worker) drop(one owed) {
	w.stats.Unsettled++
	w.forget(one.task)
	w.changed.Broadcast()
}

// forget lets the event be handled when it comes again. With mu.
func (w *Worker) forget(task *task) {
	if w.tasks[nameOf(&task.event)] == task {
		delete(w.tasks, nameOf(&task.event))
	}
}

func (w *Worker) report(err error) {
	if err == nil {
		return
	}
	if w.options.OnError != nil {
		w.callback(func() { w.options.OnError(err) })
		return
	}
	attributes := []any{"namespace", w.client.options.Namespace, "group", w.group}
	var event *EventError
	if errors.As(err, &event) {
		attributes = append(attributes, "what", event.What, "key", event.Key, "attempt", event.Attempt)
		err = event.Err
	}
	slog.Warn("timecache: a worker goes on after an error", append(attributes, "error", err)...)
}

// callback calls one of the options. One that ends its goroutine ends the worker, too.
func (w *Worker) callback(call func()) {
	w.tell.Lock()
	defer w.tell.Unlock()
	returned := false
	defer func() {
		if !returned {
			w.mu.Lock()
			w.err = cmp.Or(w.err, fmt.Errorf("callback of a worker: %w", errGoexit))
			w.mu.Unlock()
			w.stop()
		}
	}()
	call()
	returned = true
}
