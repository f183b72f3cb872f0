package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

// group is a server that gives and answers what a test says.
type group struct {
	pb.UnimplementedTimeCacheServiceServer
	t *testing.T
	// A stream each: its messages, until the test closes it; then it breaks.
	streams  chan chan *pb.ConsumeExpiredResponse
	consumed chan metadata.MD // Where a stream's metadata goes; nil: nowhere.
	// Settle answers a call; nil: all is settled.
	settle func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error)

	mu      sync.Mutex
	settled []*pb.Settlement
}

func (g *group) ConsumeExpired(_ *pb.ConsumeExpiredRequest, s grpc.ServerStreamingServer[pb.ConsumeExpiredResponse]) error {
	if g.consumed != nil {
		md, _ := metadata.FromIncomingContext(s.Context())
		g.consumed <- md
	}
	for {
		select {
		case <-s.Context().Done():
			return nil
		case messages := <-g.streams:
			for {
				select {
				case <-s.Context().Done():
					return nil
				case message, more := <-messages:
					if !more {
						return status.Error(codes.Unavailable, "broken")
					}
					if err := s.Send(message); err != nil {
						return err
					}
				}
			}
		}
	}
}

func (g *group) SettleExpired(ctx context.Context, request *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
	if g.settle != nil {
		if response, err := g.settle(ctx, request); response != nil || err != nil {
			return response, err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled = append(g.settled, request.Settlements...)
	return &pb.SettleExpiredResponse{Results: make([]*pb.SettleResult, len(request.Settlements))}, nil
}

// working runs a worker, and returns how to stop it, and its end.
func working(t *testing.T, worker *timecache.Worker) (stop func(), end chan error) {
	ctx, cancel := context.WithCancel(t.Context())
	end = make(chan error, 1)
	go func() { end <- worker.Run(ctx) }()
	return cancel, end
}

func given(events ...*pb.ExpiredEvent) *pb.ConsumeExpiredResponse {
	return &pb.ConsumeExpiredResponse{Namespace: timecache.DefaultNamespace, Events: events}
}

func TestWorker(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	type call struct {
		key     string
		attempt uint32
	}
	calls := make(chan call, 100)
	var mu sync.Mutex
	var told []string
	worker := client.Worker("g", func(ctx context.Context, event *timecache.ExpiredEvent) error {
		defer func() { calls <- call{event.Key, event.Attempt} }()
		switch {
		case event.Key == "fails" && event.Attempt == 1:
			return errors.New("broken")
		case event.Key == "later" && event.Attempt == 1:
			return timecache.Nack(5 * time.Second).Because(nil)
		case event.Key == "back":
			return fmt.Errorf("wrapped: %w", timecache.PutBack().Because(errors.New("still needed")))
		case event.Key == "refused" && event.Attempt == 1:
			return timecache.PutBack(timecache.TTL(-1)).Because(nil)
		}
		return nil
	}, timecache.WorkerOptions{Concurrency: 2, OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}})
	running, stop := context.WithCancel(ctx)
	end := make(chan error, 1)
	go func() { end <- worker.Run(running) }()
	joined(t, client, "g")
	for _, key := range []string{"ok", "fails", "later", "back", "refused"} {
		must(client.Put(ctx, key, []byte("v")))(t)
	}
	seen := map[call]int{}
	wait := func(total int) {
		t.Helper()
		for ; total > 0; total-- {
			select {
			case call := <-calls:
				seen[call]++
			case <-time.After(patience):
				t.Fatal("the handler was not called: ", seen)
			}
		}
	}
	must(clock.Advance(ctx, 11*time.Second))(t)
	wait(5)
	eventually(t, func() bool { s := worker.Stats(); return s.Acked+s.Nacked+s.PutBack == 5 })
	must(clock.Advance(ctx, time.Second))(t)
	wait(2)
	must(clock.Advance(ctx, 4*time.Second))(t)
	wait(1)
	equal(t, "calls", seen, map[call]int{{"ok", 1}: 1, {"fails", 1}: 1, {"fails", 2}: 1, {"later", 1}: 1,
		{"later", 2}: 1, {"back", 1}: 1, {"refused", 1}: 1, {"refused", 2}: 1})
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 8, Failed: 1, Acked: 4, Nacked: 3, PutBack: 1})
	if !must(client.Contains(ctx, "back"))(t) {
		t.Error("what was put back is not there")
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{`key "fails", attempt 1: broken`, `key "back", attempt 1: still needed`, "(INVALID_FIELD): ttl must be"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not told in:\n%s", want, all)
		}
	}
	if err := worker.Run(ctx); err == nil {
		t.Error("a worker runs twice")
	}
}

// An event waits as its group says, comes again with the reason, and is given up with one.
func TestWorkerLeavesTheDelayToItsGroup(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	must(client.CreateNamespace(ctx, "dead", timecache.NamespaceOptions{}))(t)
	must(client.UpdateNamespace(ctx, "main", timecache.NamespaceOptions{DeadLetterNamespace: new("dead")}))(t)
	must(client.CreateGroup(ctx, "g", timecache.GroupOptions{RetryDelay: new(5 * time.Second), RetryMultiplier: new(uint32(1))},
		timecache.FromNow))(t)
	reasons := make(chan string, 10)
	worker := client.Worker("g", func(_ context.Context, event *timecache.ExpiredEvent) error {
		reasons <- event.LastReason
		switch event.Attempt {
		case 1:
			return timecache.Nack(timecache.GroupDelay).WithReason("no card").Because(nil)
		case 2:
			return errors.New("broken")
		}
		return timecache.Terminate().WithReason("stolen card").Because(nil)
	}, timecache.WorkerOptions{RetryDelay: timecache.GroupDelay, OnError: func(error) {}})
	stop, end := working(t, worker)
	joined(t, client, "g")
	must(client.Put(ctx, "k", nil))(t)
	must(clock.Advance(ctx, 11*time.Second))(t)
	for attempt := uint64(1); attempt < 3; attempt++ {
		eventually(t, func() bool { return worker.Stats().Nacked == attempt })
		must(clock.Advance(ctx, 4*time.Second))(t)
		equal(t, "handled", worker.Stats().Handled, attempt)
		must(clock.Advance(ctx, time.Second))(t)
	}
	eventually(t, func() bool { return worker.Stats().Terminated == 1 })
	equal(t, "reasons", [...]string{<-reasons, <-reasons, <-reasons}, [...]string{"", "no card", ""})
	stop()
	if err := <-end; err != nil {
		t.Error(err)
	}
	dead := client.In("dead")
	eventually(t, func() bool { size, err := dead.Size(ctx); return err == nil && size.Entries == 1 })
	for entry, err := range dead.Scan(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		letter := must(timecache.DecodeDeadLetter(&entry))(t)
		equal(t, "reason", letter.Reason, timecache.DeadLetterTerminated)
		equal(t, "its text", letter.ReasonText, "stolen card")
	}
}

// A stop waits for the handlers that run, settles them, and gives the rest back.
func TestWorkerStops(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	begun, goOn := make(chan bool, 10), make(chan bool)
	worker := client.Worker("g", func(ctx context.Context, event *timecache.ExpiredEvent) error {
		begun <- true
		<-goOn
		return ctx.Err()
	}, timecache.WorkerOptions{Concurrency: 2})
	running, stop := context.WithCancel(ctx)
	end := make(chan error, 1)
	go func() { end <- worker.Run(running) }()
	joined(t, client, "g")
	for i := range 5 {
		must(client.Put(ctx, fmt.Sprint(i), nil))(t)
	}
	must(clock.Advance(ctx, 11*time.Second))(t)
	<-begun
	<-begun
	stop()
	close(goOn)
	if err := <-end; err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 2, Acked: 2})
	eventually(t, func() bool {
		g, err := client.GetGroup(ctx, "g", timecache.IncludeStatistics)
		return err == nil && g.Statistics.GetMembers() == 0 && g.Statistics.GetBacklog() == 3
	})
}

// A stop in the middle of a settlement waits for its answer.
func TestWorkerStopsWhileItSettles(t *testing.T) {
	asked, goOn := make(chan bool), make(chan bool)
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	service.settle = func(ctx context.Context, _ *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		close(asked)
		<-goOn
		return nil, ctx.Err()
	}
	worker := serve(t, service, timecache.Options{}).Worker("g", func(context.Context, *timecache.ExpiredEvent) error { return nil },
		timecache.WorkerOptions{Reconnect: quick})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), Version: 1, EventId: 1, Attempt: 1})
	receive(t, asked)
	stop()
	close(goOn)
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 1, Acked: 1})
}

// Run ends with what ends its stream.
func TestWorkerEnds(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	end := make(chan error, 1)
	worker := client.Worker("g", nil, timecache.WorkerOptions{})
	go func() { end <- worker.Run(t.Context()) }()
	joined(t, client, "g")
	if err := client.DeleteGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	refused(t, <-end, codes.NotFound, timecache.GroupNotFound)
}

// What was handled while the server was away, and the worker told to stop, is settled when it
// is back.
func TestWorkerStopsOverARestart(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock", "--journal", t.TempDir())
	client := server.Client(timecache.Options{Namespace: "main"})
	must(client.CreateNamespace(t.Context(), "main", timecache.NamespaceOptions{Durability: timecache.Sync}))(t)
	begun, goOn := make(chan bool), make(chan bool)
	told, onError := telling()
	worker := client.Worker("g", func(context.Context, *timecache.ExpiredEvent) error {
		begun <- true
		<-goOn
		return nil
	}, timecache.WorkerOptions{Reconnect: quick, StopTimeout: time.Minute, OnError: onError})
	stop, end := working(t, worker)
	joined(t, client, "g")
	must(client.Put(t.Context(), "k", nil))(t)
	must(timecachetest.NewClock(client).Advance(t.Context(), time.Minute))(t)
	receive(t, begun)
	server.Kill()
	stop()
	close(goOn)
	refused(t, receive(t, told), codes.Unavailable, "")
	server.Restart()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 1, Acked: 1})
	settled(t, client, "g")
}

// A stop ends also where settlements do not arrive, and says why.
func TestWorkerGivesSettlingUp(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	service.settle = func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		return nil, status.Error(codes.Unavailable, "away")
	}
	told, onError := telling()
	worker := serve(t, service, timecache.Options{}).Worker("g", func(context.Context, *timecache.ExpiredEvent) error { return nil },
		timecache.WorkerOptions{Reconnect: quick, StopTimeout: time.Millisecond, OnError: onError})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), Version: 1, EventId: 1, Attempt: 1})
	receive(t, told)
	stop()
	refused(t, receive(t, end), codes.Unavailable, "")
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 1, Unsettled: 1})
}

// A refusal that passes, of a call of which nothing was done, does not cost the settlement.
func TestWorkerSettlesWhatPasses(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	var calls atomic.Int32
	service.settle = func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		switch calls.Add(1) {
		case 1: // As of a proxy.
			return nil, status.Error(codes.ResourceExhausted, "too many requests")
		case 3:
			return nil, nil
		}
		refusal, err := status.New(codes.ResourceExhausted, "read first").WithDetails(
			&errdetails.ErrorInfo{Reason: string(timecache.UnreadResponses), Domain: "timecached"})
		if err != nil {
			t.Error(err)
		}
		return nil, refusal.Err()
	}
	worker := serve(t, service, timecache.Options{}).Worker("g", func(context.Context, *timecache.ExpiredEvent) error { return nil },
		timecache.WorkerOptions{Reconnect: quick})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), Version: 1, EventId: 1, Attempt: 1})
	eventually(t, func() bool { return worker.Stats().Acked == 1 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 1, Acked: 1})
}

// A handler that ends its goroutine has failed, and the worker goes on.
func TestWorkerSurvivesGoexit(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	told, onError := telling()
	begun, goOn := make(chan bool), make(chan bool)
	worker := serve(t, service, timecache.Options{}).Worker("g", func(_ context.Context, event *timecache.ExpiredEvent) error {
		switch event.Key {
		case "ok":
			return nil
		case "last":
			begun <- true
			<-goOn
		}
		runtime.Goexit() // As t.FailNow does.
		return nil
	}, timecache.WorkerOptions{Reconnect: quick, Concurrency: 1, RetryDelay: 7 * time.Second,
		OnError: onError})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("fails"), Version: 1, EventId: 1, Attempt: 1},
		&pb.ExpiredEvent{Key: []byte("ok"), Version: 2, EventId: 2, Attempt: 1})
	equal(t, "told", receive(t, told).Error(), `handler of namespace "", group "g", key "fails", attempt 1: it has ended its goroutine`)
	eventually(t, func() bool { s := worker.Stats(); return s.Acked == 1 && s.Nacked == 1 })
	service.mu.Lock()
	equal(t, "delay", service.settled[0].GetNack().GetDelay().AsDuration(), 7*time.Second)
	service.mu.Unlock()
	// Also in the midst of a stop.
	messages <- given(&pb.ExpiredEvent{Key: []byte("last"), Version: 3, EventId: 3, Attempt: 1})
	receive(t, begun)
	stop()
	close(goOn)
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 3, Failed: 2, Acked: 1, Nacked: 2})
}

// Run ends, and says why, where one of its callbacks ends its goroutine.
func TestWorkerEndsWithItsCallbacks(t *testing.T) {
	for name, test := range map[string]struct {
		lost   uint64
		handle error
		settle error
	}{
		"OnLoss, of the reading goroutine":   {lost: 1},
		"OnError, of a handler's goroutine":  {handle: errors.New("broken")},
		"OnError, of the settling goroutine": {settle: status.Error(codes.Unavailable, "away")},
	} {
		t.Run(name, func(t *testing.T) {
			service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
			service.settle = func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
				return nil, test.settle
			}
			worker := serve(t, service, timecache.Options{}).Worker("g",
				func(context.Context, *timecache.ExpiredEvent) error { return test.handle },
				timecache.WorkerOptions{Reconnect: quick, OnError: func(error) { runtime.Goexit() },
					OnLoss: func(uint64) { runtime.Goexit() }})
			_, end := working(t, worker)
			messages := make(chan *pb.ConsumeExpiredResponse)
			service.streams <- messages
			message := given(&pb.ExpiredEvent{Key: []byte("k"), Version: 1, EventId: 1, Attempt: 1})
			message.Lost = test.lost
			messages <- message
			if err := receive(t, end); err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
				t.Error(err)
			}
			equal(t, "nacked", worker.Stats().Nacked == 1, test.handle != nil)
		})
	}
}

// The metadata of Run's context and of the call options goes with the stream and the
// settlements, that of the options not with what a handler calls.
func TestWorkerMetadata(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse), consumed: make(chan metadata.MD, 1)}
	settled, handled := make(chan metadata.MD, 1), make(chan metadata.MD, 1)
	service.settle = func(ctx context.Context, _ *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		settled <- md
		return nil, nil
	}
	worker := serve(t, service, timecache.Options{}).Worker("g", func(ctx context.Context, _ *timecache.ExpiredEvent) error {
		md, _ := metadata.FromOutgoingContext(ctx)
		handled <- md
		return nil
	}, timecache.WorkerOptions{}, timecache.RequestID("mine"))
	ctx, stop := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "traceparent", "t", "x-request-id", "outer"))
	end := make(chan error, 1)
	go func() { end <- worker.Run(ctx) }()
	messages := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), Version: 1, EventId: 1, Attempt: 1})
	for _, test := range []struct {
		of   string
		from chan metadata.MD
		id   string
	}{{"stream", service.consumed, "mine"}, {"handler", handled, "outer"}, {"settlement", settled, "mine"}} {
		md := receive(t, test.from)
		equal(t, "request id of the "+test.of, md.Get("x-request-id"), []string{test.id})
		equal(t, "trace of the "+test.of, md.Get("traceparent"), []string{"t"})
	}
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
}

// A settlement whose context ends in the middle of it says so, and is not sent again.
func TestSettleCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	service := &group{t: t}
	service.settle = func(ctx context.Context, _ *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		calls.Add(1)
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := serve(t, service, timecache.Options{}).Settle(ctx, "g", []timecache.Settlement{{DeliveryToken: "t"}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	refused(t, err, codes.Canceled, "")
	equal(t, "calls", calls.Load(), 1)
}
