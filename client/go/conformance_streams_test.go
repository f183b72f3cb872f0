package timecache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// The watches, members and workers of scenarios.

// events is a watch or a member.
type events struct {
	member     bool
	namespaces []string
	cancel     context.CancelFunc
	next       func() (*timecache.WatchBatch, error, bool)
	stop       func()
	unread     []timecache.ExpiredEvent
	changes    []timecache.ChangeEvent
	changed    map[string][]timecache.ChangeEvent // By namespace.
	lost       uint64
	watermarks map[string]time.Time
	delivered  time.Time // In a group.
	tokens     object
	told       map[string]bool // Of what is going to die.
}

func (e *events) close() error {
	e.cancel()
	e.stop()
	return nil
}

// read takes one batch.
func (e *events) read() error {
	batch, err, _ := e.next()
	if err != nil {
		return err
	}
	e.lost += batch.Lost
	e.watermarks[batch.Namespace] = batch.Watermark
	e.delivered = batch.Delivered
	e.changed[batch.Namespace] = append(e.changed[batch.Namespace], e.changes...)
	e.changes = nil
	e.tokens[batch.Namespace] = batch.ResumeToken
	for _, event := range batch.Events {
		id := fmt.Sprint(event.Namespace, event.Key, event.Version, event.Deadline)
		if event.Cause != timecache.CauseExpiring || !e.told[id] {
			e.unread = append(e.unread, event)
		}
		e.told[id] = true
	}
	return nil
}

// begin opens it, and waits until it stands.
func (r *run) begin(step object, name string, namespaces []string, member bool,
	open func(context.Context, *events) iter.Seq2[*timecache.WatchBatch, error]) error {
	ctx, cancel := context.WithCancel(r.ctx)
	e := &events{member: member, namespaces: namespaces, cancel: cancel, watermarks: map[string]time.Time{},
		tokens: object{}, told: map[string]bool{}, changed: map[string][]timecache.ChangeEvent{}}
	e.next, e.stop = iter.Pull2(open(ctx, e))
	r.open[name] = e
	for {
		err := e.read()
		if want, has := step["error"]; has {
			return r.match("error", want, err)
		}
		if err != nil || len(e.watermarks) == len(namespaces) {
			return err
		}
	}
}

func (r *run) watch(name string, step object) error {
	err := known(step, "watch", "watch_expiring", "watch_changes", "args", "error")
	arguments, failure := r.arguments(step)
	if err = errors.Join(err, failure); err != nil {
		return err
	}
	tokens, arguments := take(arguments, "resume_tokens")
	if _, expiring := step["watch_expiring"]; expiring {
		request, err := filled(&pb.WatchExpiringRequest{Namespaces: nil}, arguments)
		if err != nil || tokens != nil {
			return errors.Join(err, known(object{"resume_tokens": tokens}))
		}
		namespaces := orMain(request.Namespaces)
		return r.begin(step, name, namespaces, false, func(ctx context.Context, _ *events) iter.Seq2[*timecache.WatchBatch, error] {
			return r.client.WatchExpiring(ctx, request.LeadTime.AsDuration(), timecache.ExpiringOptions{
				Namespaces: namespaces, KeyPrefix: string(request.KeyPrefix), KeysOnly: request.KeysOnly,
				Heartbeat: request.HeartbeatInterval.AsDuration()})
		})
	}
	_, ofChanges := step["watch_changes"]
	request, err := filled(&pb.WatchExpiredRequest{}, arguments) // That of changes has the same fields.
	if err != nil {
		return err
	}
	options := timecache.WatchOptions{Namespaces: orMain(request.Namespaces), Start: timecache.Start(request.Start),
		ResumeTokens: map[string][]byte{}, KeyPrefix: string(request.KeyPrefix), KeysOnly: request.KeysOnly,
		Heartbeat: request.HeartbeatInterval.AsDuration(), FailOnLoss: request.FailOnLoss}
	given, _ := tokens.(object)
	for namespace, token := range given {
		if options.ResumeTokens[namespace], err = toBytes(token); err != nil {
			return err
		}
	}
	return r.begin(step, name, options.Namespaces, false, func(ctx context.Context, e *events) iter.Seq2[*timecache.WatchBatch, error] {
		if !ofChanges {
			return r.client.Watch(ctx, options)
		}
		return func(yield func(*timecache.WatchBatch, error) bool) {
			for batch, err := range r.client.WatchChanges(ctx, options) {
				if err != nil {
					yield(nil, err)
					return
				}
				e.changes = batch.Changes
				if !yield(&timecache.WatchBatch{Namespace: batch.Namespace, Watermark: batch.Watermark, Lost: batch.Lost,
					ResumeToken: batch.ResumeToken}, nil) {
					return
				}
			}
		}
	})
}

func orMain(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{"main"}
	}
	return namespaces
}

func (r *run) member(name string, step object) error {
	err := known(step, "member", "args", "error")
	arguments, failure := r.arguments(step)
	request, refusal := filled(&pb.ConsumeExpiredRequest{}, arguments)
	if err = errors.Join(err, failure, refusal); err != nil {
		return err
	}
	options := timecache.ConsumeOptions{Namespaces: orMain(request.Namespaces), Start: timecache.Start(request.Start),
		MaxInFlight: int(request.GetMaxInFlight()), KeysOnly: request.KeysOnly,
		Heartbeat: request.HeartbeatInterval.AsDuration()}
	return r.begin(step, name, options.Namespaces, true, func(ctx context.Context, _ *events) iter.Seq2[*timecache.WatchBatch, error] {
		return r.client.Consume(ctx, request.Group, options)
	})
}

// count is how many elements an expected list has.
func count(expected any) int {
	switch expected := expected.(type) {
	case []any:
		return len(expected)
	case object:
		return count(expected["unordered"])
	}
	return 0
}

// readEvents reads a watch up to the clock's time, a member for so many events and until all
// up to a moment is delivered, or to its end; failure is what ended it, err the runner's.
func (r *run) readEvents(name string, members int, delivered time.Time, ends bool) (e *events, failure, err error) {
	e, is := r.open[name].(*events)
	if !is {
		return nil, nil, fmt.Errorf("%s is no watch", name)
	}
	now, err := r.clock.Now(r.ctx)
	if err != nil {
		return nil, nil, err
	}
	complete := func() bool {
		if e.member {
			return len(e.unread) >= members && !e.delivered.Before(delivered)
		}
		for _, namespace := range e.namespaces {
			if e.watermarks[namespace].Before(now) {
				return false
			}
		}
		return true
	}
	timer := time.AfterFunc(10*time.Second, e.cancel)
	defer timer.Stop()
	for ends || !complete() {
		if failure := e.read(); failure != nil {
			return nil, failure, nil
		}
	}
	return e, nil, nil
}

func (r *run) events(name string, step object) error {
	if err := known(step, "events", "expect", "lost", "save", "error", "delivered"); err != nil {
		return err
	}
	_, ends := step["error"]
	delivered := time.Time{}
	if given, has := step["delivered"]; has {
		moment, err := r.resolve(given)
		if err != nil {
			return err
		}
		var is bool
		if delivered, is = moment.(time.Time); !is {
			return fmt.Errorf("delivered: %v is no time", given)
		}
	}
	e, failure, err := r.readEvents(name, count(step["expect"]), delivered, ends)
	if err != nil {
		return err
	}
	if failure != nil {
		return r.outcome(step, nil, failure)
	}
	var list []any
	for _, namespace := range e.namespaces {
		for _, event := range e.unread {
			if event.Namespace == namespace {
				list = append(list, eventProto(event))
			}
		}
		for _, change := range e.changed[namespace] {
			list = append(list, changeProto(change))
		}
	}
	clear(e.changed)
	wantLost, has := step["lost"]
	if !has {
		wantLost = json.Number("0")
	}
	if err := r.match("lost", wantLost, e.lost); err != nil {
		return err
	}
	e.unread, e.lost = nil, 0
	if err := r.match("events", step["expect"], list); err != nil {
		return err
	}
	return r.outcome(object{"save": step["save"]}, object{"events": list, "resume_token": e.tokens[e.namespaces[0]],
		"resume_tokens": e.tokens}, nil)
}

// work is a worker.
type work struct {
	stop    context.CancelFunc
	end     chan error
	handled chan timecache.ExpiredEvent
}

func (w *work) close() error {
	w.stop()
	return <-w.end
}

func (r *run) worker(name string, step object) error {
	err := known(step, "worker", "args", "handler")
	arguments, failure := r.arguments(step)
	handler, refusal := r.resolve(step["handler"])
	if err = errors.Join(err, failure, refusal, known(arguments, "namespace", "group", "start", "keys_only",
		"max_in_flight", "concurrency", "retry_delay")); err != nil {
		return err
	}
	namespace, rest := take(arguments, "namespace")
	concurrency, rest := take(rest, "concurrency")
	delay, rest := take(rest, "retry_delay")
	request, err := filled(&pb.ConsumeExpiredRequest{}, rest)
	if err != nil {
		return err
	}
	client := r.client
	if namespace != nil {
		client = client.In(namespace.(string))
	}
	options := timecache.WorkerOptions{Start: timecache.Start(request.Start), KeysOnly: request.KeysOnly,
		MaxInFlight: int(request.GetMaxInFlight())}
	if concurrency != nil {
		many, _ := concurrency.(json.Number).Int64()
		options.Concurrency = int(many)
	}
	if delay != nil {
		if options.RetryDelay, err = parseDuration(delay.(string)); err != nil {
			return err
		}
	}
	says, _ := handler.(object)
	var mu sync.Mutex
	calls := map[string]int{}
	w := &work{end: make(chan error, 1), handled: make(chan timecache.ExpiredEvent, 10_000)}
	worker := client.Worker(request.Group, func(_ context.Context, event *timecache.ExpiredEvent) error {
		defer func() { w.handled <- *event }()
		mu.Lock()
		defer mu.Unlock()
		actions, _ := says[event.Key].([]any)
		if len(actions) == 0 {
			return nil
		}
		action := actions[min(calls[event.Key], len(actions)-1)].(object)
		calls[event.Key]++
		if text, throws := action["throw"]; throws {
			return errors.New(text.(string))
		}
		settlement := &pb.Settlement{}
		if err := fill(settlement, action); err != nil {
			panic(err)
		}
		switch said := settlement.Action.(type) {
		case *pb.Settlement_Nack:
			return nack(said.Nack).Because(nil)
		case *pb.Settlement_Terminate:
			return timecache.Terminate().WithReason(said.Terminate.Reason).Because(nil)
		case *pb.Settlement_PutBack:
			return putBack(said.PutBack).Because(nil)
		}
		return nil
	}, options)
	members := func() uint64 {
		group, err := client.GetGroup(r.ctx, request.Group, timecache.IncludeStatistics)
		if err != nil {
			return 0
		}
		return group.Statistics.GetMembers()
	}
	before := members()
	ctx, stop := context.WithCancel(r.ctx)
	w.stop = stop
	r.open[name] = w
	go func() { w.end <- worker.Run(ctx) }()
	for begin := time.Now(); members() <= before; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			return fmt.Errorf("the worker is no member of its group")
		}
	}
	return nil
}

func (r *run) handled(name string, step object) error {
	if err := known(step, "handled", "expect"); err != nil {
		return err
	}
	w, is := r.open[name].(*work)
	if !is {
		return fmt.Errorf("%s is no worker", name)
	}
	var list []any
	timeout := time.After(patience)
	for len(list) < count(step["expect"]) {
		select {
		case event := <-w.handled:
			list = append(list, eventProto(event))
		case <-timeout:
			return fmt.Errorf("after %s only these were handled: %v", patience, list)
		}
	}
	return r.match("handled", step["expect"], list)
}

func (r *run) close(name string, step object) error {
	one, has := r.open[name]
	if !has {
		return fmt.Errorf("%s is not open", name)
	}
	delete(r.open, name)
	return errors.Join(known(step, "close"), one.close())
}

// What the client gives, as the protos have it.
