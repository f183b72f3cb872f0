package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

func TestWatch(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	watch := read(t, client.Watch(ctx, timecache.WatchOptions{KeyPrefix: "k", Heartbeat: time.Hour}))
	watch.batch()
	put := must(client.Put(ctx, "k1", []byte("v"), timecache.TTL(2500*time.Millisecond)))(t)
	must(client.Put(ctx, "x", nil))(t)
	must(client.Gather(ctx, "k2", "p", []byte("v"), timecache.PartCount(2)))(t)
	now := must(clock.Advance(ctx, 5*time.Second))(t)
	_, batches := watch.until(now)
	event := batches[0].Events[0]
	if event.DeliveredAt.Before(event.DeathTime) {
		t.Error(event.DeliveredAt)
	}
	event.DeliveredAt = time.Time{}
	equal(t, "event", event, timecache.ExpiredEvent{Namespace: "main", Key: "k1", Value: []byte("v"),
		Version: put.Version, PutTime: time.Unix(0, 0).UTC(), Deadline: time.Unix(2, 5e8).UTC(),
		DeathTime: time.Unix(3, 0).UTC(), Cause: timecache.CauseExpired,
		CreateTime: time.Unix(0, 0).UTC(), OwnTTL: 2500 * time.Millisecond})
	token := batches[len(batches)-1].ResumeToken

	must(clock.Advance(ctx, 10*time.Second))(t)
	resumed := read(t, client.Watch(ctx, timecache.WatchOptions{ResumeTokens: map[string][]byte{"main": token}}))
	events := resumed.batch().Events
	slices.SortFunc(events, func(a, b timecache.ExpiredEvent) int { return strings.Compare(b.Key, a.Key) })
	equal(t, "events behind the token", []string{events[0].Key, events[1].Key}, []string{"x", "k2"})
	equal(t, "parts", events[1].Parts.Parts, []timecache.Part{{Name: "p", Value: []byte("v")}})
	equal(t, "cause", events[0].Cause.String(), "EXPIRED")
}

// A loop that was left goes on where it was.
func TestWatchAgain(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx, cancel := context.WithCancel(t.Context())
	watch := client.Watch(ctx, timecache.WatchOptions{})
	var keys []string
	for round := range 3 {
		for batch, err := range watch {
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range batch.Events {
				keys = append(keys, event.Key)
			}
			if len(keys) == round {
				break
			}
		}
		must(client.Put(ctx, fmt.Sprint(round), nil))(t)
		must(clock.Advance(ctx, 11*time.Second))(t)
	}
	equal(t, "keys", keys, []string{"0", "1"})
	cancel()
	for batch, err := range watch {
		if batch != nil || !errors.Is(err, context.Canceled) {
			t.Error(batch, err)
		}
	}
}

func TestWatchLoss(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(time.Second), NumBuckets: new(uint32(11)),
		EventRetention: new(time.Second)})
	ctx := t.Context()
	var token []byte
	for batch, err := range client.Watch(ctx, timecache.WatchOptions{}) {
		token = must(batch, err)(t).ResumeToken
		break
	}
	// While the watch is there, events that it has not read are kept for it.
	eventually(t, func() bool {
		return must(client.GetNamespace(ctx, "main", timecache.IncludeStatistics))(t).Statistics.Watchers == 0
	})
	for range 3 {
		must(client.Put(ctx, "k", nil))(t)
		must(clock.Advance(ctx, 10*time.Second))(t)
	}
	resume := timecache.WatchOptions{ResumeTokens: map[string][]byte{"main": token}}
	batch := read(t, client.Watch(ctx, resume)).batch()
	if batch.Lost == 0 || int(batch.Lost)+len(batch.Events) != 3 {
		t.Errorf("of 3 events %d are told and %d lost", len(batch.Events), batch.Lost)
	}
	resume.FailOnLoss = true
	for _, err := range client.Watch(ctx, resume) {
		refused(t, err, codes.OutOfRange, timecache.ResumePointTrimmed)
	}
	refusedWatch(t, client.In("absent").Watch(ctx, timecache.WatchOptions{}), codes.NotFound, timecache.NamespaceNotFound)
	refusedWatch(t, client.Watch(ctx, timecache.WatchOptions{Heartbeat: time.Microsecond}), codes.InvalidArgument, timecache.InvalidField)
}

// A server without a journal forgets its log: the watch says so, and begins anew.
func TestWatchLogChanged(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	client := server.Client(timecache.Options{})
	ctx := t.Context()
	var mu sync.Mutex
	var breaks []error
	options := timecache.WatchOptions{Reconnect: timecache.Reconnect{MinPause: 10 * time.Millisecond,
		MaxPause: 50 * time.Millisecond, OnBreak: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			breaks = append(breaks, err)
		}}}
	watch := read(t, client.Watch(ctx, options))
	watch.batch()
	now := must(timecachetest.NewClock(client).Advance(ctx, time.Minute))(t)
	_, before := watch.until(now)
	server.Stop()
	server.Restart()
	batch := watch.batch()
	for !batch.LogChanged { // The last watermark of the server that stops.
		batch = watch.batch()
	}
	if !batch.Reconnected || batch.MissedAfter != now {
		t.Errorf("%+v", batch)
	}
	if len(breaks) == 0 {
		t.Error("no break was told")
	}
	options.FailOnLoss = true
	options.ResumeTokens = map[string][]byte{"default": before[len(before)-1].ResumeToken}
	refusedWatch(t, client.Watch(ctx, options), codes.FailedPrecondition, timecache.LogChanged)
}

// In a durable namespace, a watch and a worker miss nothing when the server is killed or stops.
func TestRestart(t *testing.T) {
	for name, end := range map[string]func(*timecachetest.Server){
		"kill": (*timecachetest.Server).Kill,
		"stop": (*timecachetest.Server).Stop,
	} {
		t.Run(name, func(t *testing.T) { testRestart(t, end) })
	}
}

func testRestart(t *testing.T, end func(*timecachetest.Server)) {
	server := timecachetest.Start(t, "--virtual-clock", "--journal", t.TempDir())
	client := server.Client(timecache.Options{Namespace: "main"})
	ctx := t.Context()
	must(client.CreateNamespace(ctx, "main", timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11)),
		Durability: timecache.Sync}))(t)
	clock := timecachetest.NewClock(client)
	reconnect := timecache.Reconnect{MinPause: 10 * time.Millisecond, MaxPause: 50 * time.Millisecond}
	watch := read(t, client.Watch(ctx, timecache.WatchOptions{Reconnect: reconnect}))
	token := watch.batch().ResumeToken

	const count, rounds = 20, 3
	var mu sync.Mutex
	handled := map[string]int{}
	all := make(chan bool)
	worker := client.Worker("g", func(ctx context.Context, event *timecache.ExpiredEvent) error {
		mu.Lock()
		defer mu.Unlock()
		if handled[event.Key]++; len(handled) == count*rounds && handled[event.Key] == 1 {
			close(all)
		}
		return nil
	}, timecache.WorkerOptions{Reconnect: reconnect})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(running) }()
	joined(t, client, "g")

	var want, got []string
	for round := range rounds {
		for i := range count {
			key := fmt.Sprintf("%d/%02d", round, i)
			must(client.Put(ctx, key, []byte("v")))(t)
			want = append(want, key)
		}
		if round < rounds-1 {
			end(server)
			server.Restart()
		}
		now := advance(t, clock, 11*time.Second)
		keys, batches := watch.until(now)
		got = append(got, keys...)
		for _, batch := range batches {
			if batch.Lost > 0 || batch.LogChanged {
				t.Errorf("round %d: %+v", round, batch)
			}
		}
	}
	slices.Sort(got)
	equal(t, "events of the watch", got, want)
	again := read(t, client.Watch(ctx, timecache.WatchOptions{ResumeTokens: map[string][]byte{"main": token}}))
	keys, _ := again.until(must(clock.Now(ctx))(t))
	slices.Sort(keys)
	equal(t, "events behind the first token", keys, want)
	<-all
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	settled(t, client, "g")
}

func TestWatchExpiring(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	watch := read(t, client.WatchExpiring(ctx, 3*time.Second, timecache.ExpiringOptions{KeysOnly: true}))
	watch.batch()
	must(client.Put(ctx, "k", []byte("v")))(t)
	now := must(clock.Advance(ctx, 8*time.Second))(t)
	_, batches := watch.until(now)
	var events []timecache.ExpiredEvent
	for _, batch := range batches {
		events = append(events, batch.Events...)
	}
	if len(events) != 1 || events[0].Key != "k" || events[0].Cause != timecache.CauseExpiring ||
		events[0].Value != nil || events[0].DeathTime != time.Unix(10, 0).UTC() {
		t.Errorf("%+v", events)
	}
	refusedWatch(t, client.WatchExpiring(ctx, 0, timecache.ExpiringOptions{}), codes.InvalidArgument, timecache.InvalidField)
}

func TestConsumeAndSettle(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	member := read(t, client.Consume(ctx, "g", timecache.ConsumeOptions{MaxInFlight: 10}))
	member.batch()
	must(client.Put(ctx, "a", []byte("1")))(t)
	must(client.Put(ctx, "b", []byte("2")))(t)
	must(clock.Advance(ctx, 11*time.Second))(t)
	events := map[string]timecache.ExpiredEvent{}
	for len(events) < 2 {
		for _, event := range member.batch().Events {
			events[event.Key] = event
		}
	}
	results := must(client.Settle(ctx, "g", []timecache.Settlement{
		{EventID: events["a"].EventID, Attempt: 1, Action: timecache.PutBack(timecache.TTL(time.Second))},
		{EventID: events["b"].EventID, Attempt: 1},
		{EventID: 1 << 40, Attempt: 1},
	}))(t)
	if results[0].Err != nil || results[0].Version == 0 || results[1].Err != nil {
		t.Errorf("%+v", results)
	}
	refused(t, results[2].Err, codes.NotFound, timecache.EventNotUnsettled)
	entry, found, err := client.Get(ctx, "a")
	if !found || err != nil || string(entry.Value) != "1" || entry.Version != results[0].Version {
		t.Error(entry, found, err)
	}
	_, err = client.Settle(ctx, "absent", []timecache.Settlement{{EventID: 1, Attempt: 1}})
	refused(t, err, codes.NotFound, timecache.GroupNotFound)
}
