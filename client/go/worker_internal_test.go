package timecache

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

// What is given to a worker again while it settles is settled again.
func TestSettledAgain(t *testing.T) {
	stale := &Error{Reason: StaleAttempt}
	done := &Error{Reason: EventNotUnsettled}
	full := &Error{Reason: MaxEntries}
	retry := Nack(time.Second)
	again := func(token string, action Action) []Settlement { return []Settlement{{token, action}} }
	for _, test := range []struct {
		name   string
		action Action
		err    error
		newest string // The token of what came meanwhile. Empty: nothing did.
		again  []Settlement
		stats  WorkerStats
	}{
		{"of a group that was made anew", Ack(), stale, "b", again("b", Ack()), WorkerStats{}},
		{"a later attempt", PutBack(), stale, "b", again("b", PutBack()), WorkerStats{}},
		{"done by another member", Ack(), done, "", nil, WorkerStats{Stale: 1}},
		{"with another member", Ack(), stale, "", nil, WorkerStats{Stale: 1}},
		{"given up by a later attempt", Terminate(), stale, "b", again("b", Terminate()), WorkerStats{}},
		{"given up", Terminate(), nil, "", nil, WorkerStats{Terminated: 1}},
		{"a nack is over", retry, stale, "b", nil, WorkerStats{Stale: 1}},
		{"a refusal", PutBack(), full, "b", again("b", retry), WorkerStats{}},
		{"a refusal of a nack", retry, full, "", nil, WorkerStats{Unsettled: 1}},
		{"done", Ack(), nil, "b", nil, WorkerStats{Acked: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			worker := (&Client{}).Worker("g", nil, WorkerOptions{})
			event := ExpiredEvent{Key: "k", Version: 1, DeliveryToken: "a"}
			worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
			one := worker.owe(worker.queue[0], test.action)
			if test.newest != "" {
				event.DeliveryToken = test.newest
				worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
			}
			worker.settled([]owed{one}, []SettleResult{{Err: test.err}}, false)
			var again []Settlement
			if len(worker.pending) > 0 {
				again = settlements(worker.pending)
			}
			if !reflect.DeepEqual(again, test.again) {
				t.Errorf("settled again: %v, want %v", again, test.again)
			}
			if worker.stats != test.stats {
				t.Errorf("%+v, want %+v", worker.stats, test.stats)
			}
			worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
			if handledAgain := len(worker.queue) > 1; handledAgain != (len(test.again) == 0 || test.again[0].Action == retry) {
				t.Error("handled again when it comes again:", handledAgain)
			}
		})
	}
}

// The last event of a worker's that comes is begun after one handler's time, not after many.
func TestWorkerHoldsTwiceAsManyEventsAsItHasHandlers(t *testing.T) {
	for _, test := range []struct {
		options WorkerOptions
		want    int
	}{
		{WorkerOptions{}, 8},
		{WorkerOptions{Concurrency: 10}, 20},
		{WorkerOptions{Concurrency: 10, MaxInFlight: 5}, 5},
	} {
		if got := (&Client{}).Worker("g", nil, test.options).options.MaxInFlight; got != test.want {
			t.Errorf("%+v: %d, want %d", test.options, got, test.want)
		}
	}
}

// A pause ends, also where its timer has fired before it waits.
func TestPauseEnds(t *testing.T) {
	worker := (&Client{}).Worker("g", nil, WorkerOptions{})
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 1000 {
			worker.pause(time.Duration(i%100) * time.Microsecond)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a pause does not end")
	}
}

// What is held is extended before a third of its time is over, of its newest delivery.
func TestExtending(t *testing.T) {
	worker := (&Client{}).Worker("g", nil, WorkerOptions{})
	e := &worker.extending
	e.knows(new(30*time.Second), time.Now())
	due := func(after time.Duration) (ids []uint64) {
		for _, one := range e.due(worker.tasks, time.Now().Add(after)) {
			ids = append(ids, one.task.event.EventID)
		}
		return ids
	}
	check := func(what string, got, want []uint64) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	event := ExpiredEvent{Key: "k", EventID: 7, DeliveryToken: "a", Version: 1}
	worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
	task := worker.queue[0]
	if pause := e.pause(time.Now()); pause > 5*time.Second || pause < 4*time.Second {
		t.Error(pause)
	}
	check("early", due(4*time.Second), nil)
	check("a sixth", due(6*time.Second), []uint64{7})
	check("again", due(7*time.Second), nil)
	check("a sixth later", due(12*time.Second), []uint64{7})

	one := owed{task, "a", Extend()}
	if told := e.answered(one, &worker.stats, &Error{Reason: StaleAttempt}); told != nil || !task.over {
		t.Error(told, task.over)
	}
	check("what another holds", due(time.Hour), nil)
	event.DeliveryToken = "b"
	worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
	// Of what is over anyhow.
	if e.answered(one, &worker.stats, &Error{Reason: StaleAttempt}); task.over {
		t.Error("it came again")
	}
	check("what came again", due(time.Hour), []uint64{7})
	check("for too long", due(13*time.Hour), nil)

	refused := &Error{Code: codes.InvalidArgument, Message: "action must be set"}
	if told := e.answered(one, &worker.stats, refused); told == nil || e.max != 0 {
		t.Error("an older server is not told of")
	}
	if told := e.answered(one, &worker.stats, refused); told != nil {
		t.Error("told again:", told)
	}
	if never := (&Client{}).Worker("g", nil, WorkerOptions{ExtendMax: -1}); never.extending.max > 0 {
		t.Error("it extends")
	}
	if e.knows(nil, time.Now()); e.ackTimeout != 30*time.Second || e.pause(time.Now()) > time.Second {
		t.Error("what could not be read is read again")
	}
}
