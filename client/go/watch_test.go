package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

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
