package timecache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// group is a server that gives and answers what a test says.
type group struct {
	pb.UnimplementedTimeCacheServiceServer
	t *testing.T
	// A stream each: its messages, until the test closes it; then it breaks.
	streams chan chan *pb.ConsumeExpiredResponse
	// Settle answers a call; nil: all is settled.
	settle func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error)

	mu      sync.Mutex
	settled []*pb.Settlement
}

func (g *group) ConsumeExpired(_ *pb.ConsumeExpiredRequest, s grpc.ServerStreamingServer[pb.ConsumeExpiredResponse]) error {
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

// receive takes what comes soon, or the test has failed.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(10 * time.Second):
		t.Fatal("nothing within 10 s")
		panic("not reached")
	}
}

var quick = timecache.Reconnect{MinPause: time.Millisecond, MaxPause: 10 * time.Millisecond}

// A server without a journal that starts again gives other events the ids of those that a
// worker still has: they are handled, too, and only they are settled.
func TestWorkerTellsEventsOfOneIDApart(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	begun := make(chan string, 10)
	goOn := map[string]chan bool{"old": make(chan bool), "new": make(chan bool)}
	worker := serve(t, service, timecache.Options{}).Worker("g", func(_ context.Context, event *timecache.ExpiredEvent) error {
		begun <- event.Key
		<-goOn[event.Key]
		return nil
	}, timecache.WorkerOptions{Reconnect: quick})
	stop, end := working(t, worker)

	first := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- first
	first <- given(&pb.ExpiredEvent{Key: []byte("old"), Version: 10, EventId: 1, Attempt: 1})
	equal(t, "begun", receive(t, begun), "old")
	close(first)
	second := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- second
	second <- given(&pb.ExpiredEvent{Key: []byte("new"), Version: 20, EventId: 1, Attempt: 1})
	equal(t, "begun", receive(t, begun), "new")
	close(goOn["old"])
	eventually(t, func() bool { return worker.Stats().Stale == 1 })
	service.mu.Lock()
	equal(t, "settled before the new one is handled", len(service.settled), 0)
	service.mu.Unlock()
	close(goOn["new"])
	eventually(t, func() bool { return worker.Stats().Acked == 1 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 2, Acked: 1, Stale: 1})
}

// A settlement that could not be sent is not sent for another event of the same id.
func TestWorkerSettlesNoOtherEvent(t *testing.T) {
	asked, goOn := make(chan bool, 10), make(chan bool)
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	service.settle = func(context.Context, *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		select {
		case asked <- true:
		default:
		}
		select {
		case <-goOn:
			return nil, nil
		default:
			return nil, status.Error(codes.Unavailable, "no")
		}
	}
	begun := make(chan string, 10)
	waits := make(chan bool)
	worker := serve(t, service, timecache.Options{}).Worker("g", func(_ context.Context, event *timecache.ExpiredEvent) error {
		begun <- event.Key
		if event.Key == "new" {
			<-waits
		}
		return nil
	}, timecache.WorkerOptions{Reconnect: quick})
	stop, end := working(t, worker)
	first := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- first
	first <- given(&pb.ExpiredEvent{Key: []byte("old"), Version: 10, EventId: 1, Attempt: 1})
	receive(t, asked)
	close(first)
	second := make(chan *pb.ConsumeExpiredResponse)
	service.streams <- second
	second <- given(&pb.ExpiredEvent{Key: []byte("new"), Version: 20, EventId: 1, Attempt: 1})
	equal(t, "begun", []string{receive(t, begun), receive(t, begun)}, []string{"old", "new"})
	close(goOn)
	eventually(t, func() bool { return worker.Stats().Stale == 1 })
	equal(t, "acked", worker.Stats().Acked, 0)
	close(waits)
	eventually(t, func() bool { return worker.Stats().Acked == 1 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
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
