package timecache_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

// virtual has a client of a namespace of its own, on a server with a virtual clock.
func virtual(t *testing.T, options timecache.NamespaceOptions) (*timecache.Client, *timecachetest.Clock) {
	t.Helper()
	client := timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{Namespace: "main"})
	if _, err := client.CreateNamespace(t.Context(), "main", options); err != nil {
		t.Fatal(err)
	}
	return client, timecachetest.NewClock(client)
}

// must takes the error out of two results.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// refused checks an error's code and reason.
func refused(t *testing.T, err error, code codes.Code, reason timecache.Reason) {
	t.Helper()
	var failure *timecache.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want %v (%v)", err, code, reason)
	}
	if failure.Code != code || failure.Reason != reason || status.Code(err) != code {
		t.Fatalf("got %v, want %v (%v)", err, code, reason)
	}
	if reason != "" && !errors.Is(err, reason) {
		t.Fatalf("%v is not %v", err, reason)
	}
}

func refusedWatch(t *testing.T, watch iter.Seq2[*timecache.WatchBatch, error], code codes.Code, reason timecache.Reason) {
	t.Helper()
	for batch, err := range watch {
		if batch != nil {
			t.Fatal("a batch:", batch)
		}
		refused(t, err, code, reason)
	}
}

// Only a test that fails waits for so long.
const patience = time.Minute

// receive takes what comes soon, or the test has failed.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("nothing within a minute")
		panic("not reached")
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("not within a minute")
		}
	}
}

// reader reads a watch step by step.
type reader struct {
	t    *testing.T
	next func() (*timecache.WatchBatch, error, bool)
	stop func()
}

func read(t *testing.T, watch iter.Seq2[*timecache.WatchBatch, error]) *reader {
	next, stop := iter.Pull2(watch)
	t.Cleanup(stop)
	return &reader{t, next, stop}
}

// batch returns the next one.
func (r *reader) batch() *timecache.WatchBatch {
	r.t.Helper()
	batch, err, ok := r.next()
	if err != nil || !ok {
		r.t.Fatal("the watch has ended: ", err)
	}
	return batch
}

// until reads up to a watermark, and returns the keys of the events, and all batches.
func (r *reader) until(watermark time.Time) (keys []string, batches []*timecache.WatchBatch) {
	r.t.Helper()
	for {
		batch := r.batch()
		batches = append(batches, batch)
		for _, event := range batch.Events {
			keys = append(keys, event.Key)
		}
		if !batch.Watermark.Before(watermark) {
			return keys, batches
		}
	}
}

// advance waits for a server that was started anew.
func advance(t *testing.T, clock *timecachetest.Clock, by time.Duration) time.Time {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		now, err := clock.Advance(t.Context(), by)
		if err == nil {
			return now
		}
		if time.Since(begin) > patience {
			t.Fatal(err)
		}
	}
}

// joined waits until a group has a member.
func joined(t *testing.T, client *timecache.Client, group string) {
	t.Helper()
	eventually(t, func() bool {
		g, err := client.GetGroup(t.Context(), group, timecache.IncludeStatistics)
		return err == nil && g.Statistics.GetMembers() > 0
	})
}

// settled waits until nothing of a group is unsettled.
func settled(t *testing.T, client *timecache.Client, group string) {
	t.Helper()
	eventually(t, func() bool {
		g, err := client.GetGroup(t.Context(), group, timecache.IncludeStatistics)
		return err == nil && g.Statistics.GetInFlight()+g.Statistics.GetBacklog() == 0
	})
}

// telling has an OnError, and where its errors go. With nobody there who reads them it drops
// them: it must not hold its worker up.
func telling() (told chan error, onError func(error)) {
	told = make(chan error, 1000)
	return told, func(err error) {
		select {
		case told <- err:
		default:
		}
	}
}

var quick = timecache.Reconnect{MinPause: time.Millisecond, MaxPause: 10 * time.Millisecond}

// serve runs a service until the test ends, and makes a client of it.
func serve(t *testing.T, service pb.TimeCacheServiceServer, options timecache.Options) *timecache.Client {
	t.Helper()
	return serveAll(t, options, func(server *grpc.Server) { pb.RegisterTimeCacheServiceServer(server, service) })
}

// serveAll is serve of several services.
func serveAll(t *testing.T, options timecache.Options, register func(*grpc.Server)) *timecache.Client {
	t.Helper()
	server := grpc.NewServer()
	register(server)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client := must(timecache.NewClient(listener.Addr().String(), options))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// flaky fails the first calls, and remembers the metadata of all. It answers no pipeline.
type flaky struct {
	pb.UnimplementedTimeCacheServiceServer
	mu    sync.Mutex
	fail  []error
	calls []metadata.MD
	limit time.Duration
}

func (f *flaky) called(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.calls = append(f.calls, md)
	if deadline, has := ctx.Deadline(); has {
		f.limit = time.Until(deadline)
	}
	if len(f.calls) <= len(f.fail) {
		return f.fail[len(f.calls)-1]
	}
	return nil
}

func (f *flaky) Get(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, error) {
	return &pb.GetResponse{}, f.called(ctx)
}

func (f *flaky) Put(ctx context.Context, _ *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{}, f.called(ctx)
}

func (f *flaky) Append(ctx context.Context, _ *pb.AppendRequest) (*pb.AppendResponse, error) {
	return &pb.AppendResponse{}, f.called(ctx)
}

func (f *flaky) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	<-stream.Context().Done()
	return nil
}

// answersTo answers puts, gets, whose values are their keys, and Contains.
func answersTo(request *pb.ExecuteRequest) *pb.ExecuteResponse {
	response := &pb.ExecuteResponse{}
	for _, operation := range request.Operations {
		result := &pb.OperationResult{Result: &pb.OperationResult_Put{Put: &pb.PutResponse{Version: 1}}}
		if get := operation.GetGet(); get != nil {
			result.Result = &pb.OperationResult_Get{Get: &pb.GetResponse{Entry: &pb.Entry{Value: get.Key, Version: 1}}}
		} else if operation.GetContains() != nil {
			result.Result = &pb.OperationResult_Contains{Contains: &pb.ContainsResponse{Contains: true}}
		}
		response.Results = append(response.Results, result)
	}
	return response
}

// answerAll is a Pipeline of them.
func answerAll(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		if err := stream.Send(answersTo(request)); err != nil {
			return err
		}
	}
}
