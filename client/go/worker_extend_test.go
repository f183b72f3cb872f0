package timecache_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// keeper is a group whose ack timeout is short.
type keeper struct {
	pb.UnimplementedGroupServiceServer
}

func (keeper) GetGroup(_ context.Context, request *pb.GetGroupRequest) (*pb.GetGroupResponse, error) {
	return &pb.GetGroupResponse{Group: &pb.Group{Name: request.Name, Namespace: request.Namespace,
		Options: &pb.GroupOptions{AckTimeout: durationpb.New(60 * time.Millisecond)}}}, nil
}

func refusal(t *testing.T, code codes.Code, reason timecache.Reason) *rpcstatus.Status {
	t.Helper()
	refused := must(status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Reason: string(reason)}))(t)
	return refused.Proto()
}

func (g *group) extensions() (count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, settlement := range g.settled {
		if settlement.GetExtend() != nil {
			count++
		}
	}
	return count
}

// A handler takes as long as it needs: its event is not given to others meanwhile.
func TestWorkerKeepsWhatItHandles(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	client := serveAll(t, timecache.Options{}, func(server *grpc.Server) {
		pb.RegisterTimeCacheServiceServer(server, service)
		pb.RegisterGroupServiceServer(server, keeper{})
	})
	told, onError := telling()
	worker := client.Worker("g", func(context.Context, *timecache.ExpiredEvent) error {
		eventually(t, func() bool { return service.extensions() >= 3 })
		return nil
	}, timecache.WorkerOptions{OnError: onError})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse, 1)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), EventId: 7, Attempt: 2, DeliveryToken: []byte("t")})
	eventually(t, func() bool { return worker.Stats().Acked == 1 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	if worker.Stats().Extended < 3 || len(told) > 0 {
		t.Error(worker.Stats(), len(told))
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	equal(t, "token", string(service.settled[0].GetDeliveryToken()), "t")
}

// That what a handler has done counts for nothing is told.
func TestWorkerTellsWhatCouldNotBeSettled(t *testing.T) {
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	stale := refusal(t, codes.FailedPrecondition, timecache.StaleAttempt)
	service.settle = func(_ context.Context, request *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
		return &pb.SettleExpiredResponse{Results: []*pb.SettleResult{{Error: stale}}}, nil
	}
	client := serve(t, service, timecache.Options{})
	told, onError := telling()
	worker := client.Worker("g", func(context.Context, *timecache.ExpiredEvent) error { return nil },
		timecache.WorkerOptions{OnError: onError})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse, 1)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Namespace: "main", Key: []byte("k"), EventId: 7, Attempt: 2})
	err := receive(t, told)
	stop()
	receive(t, end)
	var event *timecache.EventError
	if !errors.As(err, &event) || !errors.Is(err, timecache.StaleAttempt) {
		t.Fatal(err)
	}
	equal(t, "error", err.Error(), `handled, but not settled by Ack: event of namespace "main", group "g", key "k", `+
		`attempt 2: timecache: FailedPrecondition (STALE_ATTEMPT): refused`)
}

// synchronized is a buffer for several goroutines.
type synchronized struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *synchronized) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

func (s *synchronized) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.String()
}

// Without an OnError a handler's error is logged.
func TestWorkerLogs(t *testing.T) {
	var log synchronized
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	service := &group{t: t, streams: make(chan chan *pb.ConsumeExpiredResponse)}
	worker := serve(t, service, timecache.Options{}).Worker("g", func(context.Context, *timecache.ExpiredEvent) error {
		return errors.New("broken")
	}, timecache.WorkerOptions{})
	stop, end := working(t, worker)
	messages := make(chan *pb.ConsumeExpiredResponse, 1)
	service.streams <- messages
	messages <- given(&pb.ExpiredEvent{Key: []byte("k"), EventId: 7, Attempt: 2})
	want := "namespace=default group=g what=handler key=k attempt=2 error=broken"
	eventually(t, func() bool { return strings.Contains(log.String(), want) })
	stop()
	receive(t, end)
}
