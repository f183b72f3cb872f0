package timecache

import (
	"reflect"
	"testing"
	"time"
)

// What is given to a worker again while it settles is settled again.
func TestSettledAgain(t *testing.T) {
	stale := &Error{Reason: StaleAttempt}
	full := &Error{Reason: MaxEntries}
	retry := Nack(time.Second)
	for _, test := range []struct {
		name   string
		action Action
		err    error
		newest uint32 // 0: it is not there.
		again  []Settlement
		stats  WorkerStats
	}{
		{"an attempt that is counted anew", Ack(), stale, 1, []Settlement{{7, 1, Ack()}}, WorkerStats{}},
		{"a later attempt", PutBack(), stale, 4, []Settlement{{7, 4, PutBack()}}, WorkerStats{}},
		{"with another member", Ack(), stale, 3, nil, WorkerStats{Stale: 1}},
		{"a nack is over", retry, stale, 4, nil, WorkerStats{Stale: 1}},
		{"a refusal", PutBack(), full, 4, []Settlement{{7, 4, retry}}, WorkerStats{}},
		{"a refusal of a nack", retry, full, 0, nil, WorkerStats{Unsettled: 1}},
		{"done", Ack(), nil, 4, nil, WorkerStats{Acked: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			worker := (&Client{}).Worker("g", nil, WorkerOptions{})
			if test.newest > 0 {
				worker.attempts[7] = test.newest
			}
			worker.settled([]Settlement{{7, 3, test.action}}, []SettleResult{{Err: test.err}}, false)
			if len(worker.pending)+len(test.again) > 0 && !reflect.DeepEqual(worker.pending, test.again) {
				t.Errorf("settled again: %v, want %v", worker.pending, test.again)
			}
			if worker.stats != test.stats {
				t.Errorf("%+v, want %+v", worker.stats, test.stats)
			}
			if _, known := worker.attempts[7]; known && test.action.kind != nack && len(test.again) == 0 {
				t.Error("it would not be handled again")
			}
		})
	}
}
