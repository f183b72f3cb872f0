package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
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
