package timecache

import (
	"reflect"
	"testing"
	"time"
)

// What is given to a worker again while it settles is settled again.
func TestSettledAgain(t *testing.T) {
	stale := &Error{Reason: StaleAttempt}
	done := &Error{Reason: EventNotUnsettled}
	full := &Error{Reason: MaxEntries}
	retry := Nack(time.Second)
	for _, test := range []struct {
		name   string
		action Action
		err    error
		newest uint32 // Of those that came meanwhile. 0: none did.
		again  []Settlement
		stats  WorkerStats
	}{
		{"the same attempt", Ack(), stale, 3, []Settlement{{7, 3, Ack()}}, WorkerStats{}},
		{"an attempt that is counted anew", Ack(), stale, 1, []Settlement{{7, 1, Ack()}}, WorkerStats{}},
		{"a later attempt", PutBack(), stale, 4, []Settlement{{7, 4, PutBack()}}, WorkerStats{}},
		{"one of a log that was made anew", Ack(), done, 1, []Settlement{{7, 1, Ack()}}, WorkerStats{}},
		{"done by another member", Ack(), done, 0, nil, WorkerStats{Stale: 1}},
		{"with another member", Ack(), stale, 0, nil, WorkerStats{Stale: 1}},
		{"a nack is over", retry, stale, 4, nil, WorkerStats{Stale: 1}},
		{"a refusal", PutBack(), full, 4, []Settlement{{7, 4, retry}}, WorkerStats{}},
		{"a refusal of a nack", retry, full, 0, nil, WorkerStats{Unsettled: 1}},
		{"done", Ack(), nil, 4, nil, WorkerStats{Acked: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			worker := (&Client{}).Worker("g", nil, WorkerOptions{})
			event := ExpiredEvent{Key: "k", EventID: 7, Attempt: 3, Version: 1}
			worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
			one := worker.owe(worker.queue[0], test.action)
			if test.newest > 0 {
				event.Attempt = test.newest
				worker.take(&WatchBatch{Events: []ExpiredEvent{event}})
			}
			worker.settled([]owed{one}, []SettleResult{{Err: test.err}}, false)
			var again []Settlement
			for _, one := range worker.pending {
				again = append(again, Settlement{one.task.event.EventID, one.attempt, one.action})
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
