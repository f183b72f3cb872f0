package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

func TestPipeline(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{OperationsInFlight: 1000})
	const count = 20_000
	next := 0
	for i := range count {
		err := pipeline.Add(timecache.CombineOperation("n", timecache.Add(1)), func(result timecache.Result) {
			if next++; result.Err != nil || result.Number != int64(next) {
				t.Errorf("result %d: %+v", next, result)
			}
		})
		if err != nil {
			t.Fatal(i, err)
		}
	}
	if err := pipeline.Wait(); err != nil || next != count {
		t.Fatal(err, next)
	}
	result := pipeline.Do(t.Context(), timecache.GetOperation("n"))
	if result.Err != nil || string(result.Entry.Value) != fmt.Sprint(count) {
		t.Errorf("%+v", result)
	}
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
	err := pipeline.Add(timecache.GetOperation("n"), nil)
	refused(t, err, codes.FailedPrecondition, "")

	pipeline = client.In("absent").Pipeline(t.Context(), timecache.PipelineOptions{}, timecache.RequestID("my-id"))
	refused(t, pipeline.Do(t.Context(), timecache.GetOperation("n")).Err, codes.NotFound, timecache.NamespaceNotFound)
	err = pipeline.Close()
	refused(t, err, codes.NotFound, timecache.NamespaceNotFound)
	var failure *timecache.Error
	errors.As(err, &failure)
	equal(t, "request id", failure.RequestID, "my-id")
}

// A batch never becomes more than a request may have, whatever is asked for.
func TestPipelineOfLargeBatches(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{BatchBytes: 64 << 20, BytesInFlight: 64 << 20})
	value := make([]byte, 1<<20)
	for i := range 20 {
		err := pipeline.Add(timecache.PutOperation(fmt.Sprint(i), value), func(result timecache.Result) {
			if result.Err != nil {
				t.Error(i, result.Err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
	equal(t, "entries", must(client.Size(t.Context()))(t).Entries, 20)
}

// Do does not wait for room beyond its context.
func TestPipelineDoEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pipeline := serve(t, &flaky{}, timecache.Options{}).Pipeline(ctx, timecache.PipelineOptions{OperationsInFlight: 1})
	if err := pipeline.Add(timecache.GetOperation("k"), nil); err != nil {
		t.Fatal(err)
	}
	one, end := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, end)
	if err := pipeline.Do(one, timecache.GetOperation("k")).Err; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	cancel()
	if err := pipeline.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A pipeline whose server is silent ends by itself, whether anybody waits in it or not.
func TestPipelineTimesOut(t *testing.T) {
	client := serve(t, &flaky{}, timecache.Options{Timeout: 50 * time.Millisecond})
	told := make(chan error, 1)
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	err := pipeline.Add(timecache.GetOperation("k"), func(result timecache.Result) { told <- result.Err })
	if err != nil {
		t.Fatal(err)
	}
	err = receive(t, told)
	refused(t, err, codes.DeadlineExceeded, "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	refused(t, pipeline.Close(), codes.DeadlineExceeded, "")
	refused(t, pipeline.Add(timecache.GetOperation("k"), nil), codes.DeadlineExceeded, "")
	// One that waits for the server's word alone.
	refused(t, client.Pipeline(t.Context(), timecache.PipelineOptions{}).Close(), codes.DeadlineExceeded, "")
}

// asked answers a pipeline's requests when a test says so.
type asked struct {
	pb.UnimplementedTimeCacheServiceServer
	answer chan bool
}

func (a *asked) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		<-a.answer
		response := &pb.ExecuteResponse{}
		for range request.Operations {
			response.Results = append(response.Results,
				&pb.OperationResult{Result: &pb.OperationResult_Get{Get: &pb.GetResponse{}}})
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// The timeout does not run while a callback does, whatever others add meanwhile.
func TestPipelineTimeoutSparesCallbacks(t *testing.T) {
	service := &asked{answer: make(chan bool)}
	pipeline := serve(t, service, timecache.Options{Timeout: time.Hour}).Pipeline(t.Context(), timecache.PipelineOptions{})
	begun, goOn := make(chan bool), make(chan bool)
	add := func(done func(timecache.Result)) {
		t.Helper()
		if err := pipeline.Add(timecache.GetOperation("k"), done); err != nil {
			t.Fatal(err)
		}
	}
	add(func(timecache.Result) {
		begun <- true
		<-goOn
	})
	equal(t, "runs before the answer", pipeline.AwaitsAnswer(), true)
	service.answer <- true
	receive(t, begun)
	equal(t, "runs in a callback", pipeline.AwaitsAnswer(), false)
	add(nil)
	equal(t, "runs in a callback, with another operation in flight", pipeline.AwaitsAnswer(), false)
	close(goOn)
	eventually(t, pipeline.AwaitsAnswer)
	service.answer <- true
	if err := pipeline.Wait(); err != nil {
		t.Error(err)
	}
	equal(t, "runs with nothing in flight", pipeline.AwaitsAnswer(), false)
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
}

// A callback that ends its goroutine ends the pipeline; the others are told all the same.
func TestPipelineEndsWithItsCallbacks(t *testing.T) {
	service := &asked{answer: make(chan bool)}
	defer close(service.answer)
	client := serve(t, service, timecache.Options{Timeout: -1})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{BatchOperations: 3})
	told := make(chan error, 10)
	// The first goes alone, then come three together, and two that are not answered.
	for _, exits := range []bool{false, true, false, true, true, false} {
		err := pipeline.Add(timecache.GetOperation("k"), func(result timecache.Result) {
			told <- result.Err
			if exits {
				runtime.Goexit() // As t.FailNow does.
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	service.answer <- true
	service.answer <- true
	for i := range 6 {
		if err := receive(t, told); i < 4 && err != nil {
			t.Error(i, err)
		} else if i >= 4 {
			refused(t, err, codes.Aborted, "")
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- pipeline.Close() }()
	err := receive(t, closed)
	refused(t, err, codes.Aborted, "")
	equal(t, "error", err.Error(), "timecache: Aborted: callback of a pipeline: it has ended its goroutine")
	equal(t, "told twice", len(told), 0)
	refused(t, pipeline.Wait(), codes.Aborted, "")
	refused(t, pipeline.Add(timecache.GetOperation("k"), nil), codes.Aborted, "")
}

// What a pipeline takes is told once, also when its server dies or its context ends.
func TestPipelineEnds(t *testing.T) {
	for name, end := range map[string]func(*timecachetest.Server, context.CancelFunc){
		"kill":   func(server *timecachetest.Server, _ context.CancelFunc) { server.Kill() },
		"cancel": func(_ *timecachetest.Server, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			server := timecachetest.Start(t, "--virtual-clock")
			ctx, cancel := context.WithCancel(t.Context())
			pipeline := server.Client(timecache.Options{}).Pipeline(ctx, timecache.PipelineOptions{OperationsInFlight: 50})
			taken, told, failed := 0, 0, 0
			for {
				err := pipeline.Add(timecache.PutOperation("k", []byte("v")), func(result timecache.Result) {
					if told++; result.Err != nil {
						failed++
					}
				})
				if err != nil {
					break
				}
				if taken++; taken == 500 {
					end(server, cancel)
				}
			}
			err := pipeline.Close()
			if err == nil || told != taken {
				t.Errorf("%d operations were taken, %d told, %d of them failed: %v", taken, told, failed, err)
			}
			equal(t, "cancelled", errors.Is(err, context.Canceled), name == "cancel")
			cancel()
		})
	}
}
