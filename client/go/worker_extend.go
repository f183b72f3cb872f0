package timecache

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
)

// extending says which of a worker's events get another ack timeout, and when. Six times in
// an ack timeout it looks at what is held, from its arrival until it is settled, and extends
// what has a sixth of that time behind it: so each is extended before a third is over.
// Guarded by the worker's mu.
type extending struct {
	max        time.Duration // For which one event is extended, from its arrival.
	ackTimeout time.Duration
	readNext   time.Time // When the group's ack timeout is to be read.
}

const (
	defaultAckTimeout = 30 * time.Second // A group's.
	// The group may be updated; the same where it could not be read.
	readAckTimeoutAgain = 10 * time.Second
	tryAckTimeoutAgain  = time.Second
)

// pause is how long to wait until the next look.
func (e *extending) pause(now time.Time) time.Duration {
	pause := e.ackTimeout / 6
	if !e.readNext.IsZero() {
		pause = min(pause, max(e.readNext.Sub(now), time.Millisecond))
	}
	return pause
}

// knows takes the group's ack timeout; nil: it could not be read.
func (e *extending) knows(ackTimeout *time.Duration, now time.Time) {
	e.readNext = now.Add(tryAckTimeoutAgain)
	if ackTimeout != nil {
		e.ackTimeout, e.readNext = *ackTimeout, now.Add(readAckTimeoutAgain)
	}
}

// due is what to extend now.
func (e *extending) due(tasks map[taskName]*task, now time.Time) []owed {
	var due []owed
	for _, task := range tasks {
		if task.over || task.returned || now.Sub(task.arrived) >= e.max {
			continue
		}
		if now.Sub(task.extended) >= e.ackTimeout/6 && len(due) < MaxSettlements {
			task.extended = now
			due = append(due, owed{task, task.event.DeliveryToken, Extend()})
		}
	}
	return due
}

// answered takes the server's answer, and returns what to tell, if anything.
func (e *extending) answered(one owed, stats *WorkerStats, err error) error {
	failure := newError(err, nil)
	switch {
	case failure == nil:
		stats.Extended++
	case failure.Reason == StaleAttempt, failure.Reason == EventNotUnsettled:
		// Where its handler's answer comes too late, that is told then. It may have come
		// again.
		one.task.over = one.token == one.task.event.DeliveryToken
	case failure.Code == codes.InvalidArgument && e.max > 0:
		e.max = 0 // So a server that is too old for it answers.
		problem := *failure
		problem.Message = "events are not extended any more: " + failure.Message
		return &problem
	}
	return nil
}

// extend keeps what the worker holds, until all is settled.
func (w *Worker) extend(ctx context.Context) {
	w.mu.Lock()
	for len(w.tasks) == 0 && !w.done {
		w.changed.Wait()
	}
	w.mu.Unlock()
	for {
		if err := w.lookAtHeld(ctx); err != nil && !w.client.failure(err, nil).connectionLost() {
			w.report(err) // A break is told by the stream.
		}
		w.mu.Lock()
		pause := w.extending.pause(time.Now())
		ended := w.extending.max <= 0
		w.mu.Unlock()
		if ended || !sleep(ctx, pause) {
			return
		}
	}
}

func (w *Worker) lookAtHeld(ctx context.Context) error {
	w.mu.Lock()
	wantsAckTimeout := len(w.tasks) > 0 && !w.extending.readNext.After(time.Now())
	w.mu.Unlock()
	if wantsAckTimeout {
		attempt, cancel := w.settleContext(ctx)
		// That it fails is not told: it is read again, and the default is assumed meanwhile.
		group, _ := w.client.GetGroup(attempt, w.group)
		cancel()
		w.mu.Lock()
		w.extending.knows(group.Options.AckTimeout, time.Now())
		w.mu.Unlock()
	}
	w.mu.Lock()
	due := w.extending.due(w.tasks, time.Now())
	w.mu.Unlock()
	if len(due) == 0 {
		return nil
	}
	attempt, cancel := w.settleContext(ctx)
	results, err := w.client.Settle(attempt, w.group, settlements(due), Batching(false))
	cancel()
	if err != nil {
		return err
	}
	for i, one := range due {
		w.mu.Lock()
		problem := w.extending.answered(one, &w.stats, results[i].Err)
		w.mu.Unlock()
		w.report(problem)
	}
	return nil
}
