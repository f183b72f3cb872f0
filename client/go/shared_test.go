package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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

// gated answers each request of a Pipeline, or ends its stream, when a test says so.
type gated struct {
	pb.UnimplementedTimeCacheServiceServer
	answers chan error // Nil: the answer.

	mu     sync.Mutex
	keys   []string // Of the operations that came.
	refuse *pb.OperationResult
	ids    []string // Of the streams.
	unary  []string // Keys of puts and gets of their own RPC.
	open   int      // Streams.
	newest *pb.Operation
}

func newGated() *gated { return &gated{answers: make(chan error)} }

func (g *gated) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	g.mu.Lock()
	g.open++
	g.ids = append(g.ids, md.Get("x-request-id")...)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.open--
		g.mu.Unlock()
	}()
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		response := answersTo(request)
		g.mu.Lock()
		for i, operation := range request.Operations {
			g.keys = append(g.keys, keyOf(operation))
			g.newest = operation
			if g.refuse != nil {
				response.Results[i] = g.refuse
			}
		}
		g.mu.Unlock()
		select {
		case err := <-g.answers:
			if err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func keyOf(operation *pb.Operation) string {
	if get := operation.GetGet(); get != nil {
		return string(get.Key)
	}
	return string(operation.GetPut().GetKey())
}

func (g *gated) Put(_ context.Context, request *pb.PutRequest) (*pb.PutResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unary = append(g.unary, string(request.Key))
	return &pb.PutResponse{Version: 7}, nil
}

func (g *gated) Get(_ context.Context, request *pb.GetRequest) (*pb.GetResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unary = append(g.unary, string(request.Key))
	return &pb.GetResponse{Entry: &pb.Entry{Value: []byte("alone")}}, nil
}

func (g *gated) noted() (keys, unary []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keys, g.unary
}

func (g *gated) streams() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ids
}

func (g *gated) opened() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// putting puts in a goroutine.
func putting(ctx context.Context, client *timecache.Client, key string, options ...timecache.PutOption) <-chan error {
	end := make(chan error, 1)
	go func() {
		_, err := client.Put(ctx, key, nil, options...)
		end <- err
	}()
	return end
}

// shared waits until so many calls are queued and sent.
func shared(t *testing.T, client *timecache.Client, queued, sent int) {
	t.Helper()
	eventually(t, func() bool {
		q, s := timecache.SharedCalls(client)
		return q == queued && s == sent
	})
}

// fillStream sends as many messages as may be under way, of one put each.
func fillStream(t *testing.T, client *timecache.Client) (ends []<-chan error) {
	t.Helper()
	for i := range timecache.MaxSharedMessages {
		ends = append(ends, putting(t.Context(), client, fmt.Sprint("sent", i)))
		shared(t, client, 0, i+1)
	}
	return ends
}

func TestACallThatEndsTouchesNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		context func(context.Context) (context.Context, context.CancelFunc)
		is      error
	}{
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }, context.Canceled},
		"timed out": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 200*time.Millisecond)
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			service := newGated()
			client := serve(t, service, timecache.Options{Timeout: patience})
			ends := fillStream(t, client)
			ctx, cancel := test.context(t.Context())
			other := putting(t.Context(), client, "other")
			shared(t, client, 1, timecache.MaxSharedMessages)
			queued := putting(ctx, client, "queued")
			if test.is == context.Canceled {
				shared(t, client, 2, timecache.MaxSharedMessages)
				cancel()
			}
			err := receive(t, queued)
			cancel()
			equal(t, "it ends so", errors.Is(err, test.is), true)
			equal(t, "what was not sent may be applied", maybeApplied(t, err), false)
			ends = append(ends, other)
			for range ends {
				service.answers <- nil
			}
			for _, end := range ends {
				equal(t, "the others", receive(t, end), nil)
			}

			ctx, cancel = test.context(t.Context())
			sent := putting(ctx, client, "gone")
			eventually(t, func() bool { keys, _ := service.noted(); return keys[len(keys)-1] == "gone" })
			if test.is == context.Canceled {
				cancel()
			}
			err = receive(t, sent)
			cancel()
			equal(t, "it ends so", errors.Is(err, test.is), true)
			equal(t, "what was sent may be applied", maybeApplied(t, err), true)
			next := putting(t.Context(), client, "next")
			if test.is == context.Canceled {
				service.answers <- nil // Of the one that is gone.
			} else { // A server that did not answer for so long is given up, as before.
				eventually(t, func() bool { return len(service.streams()) == 3 && service.opened() == 1 })
			}
			service.answers <- nil
			equal(t, "the next", receive(t, next), nil)
			keys, _ := service.noted()
			equal(t, "the last keys", keys[len(keys)-2:], []string{"gone", "next"})
			equal(t, "sent in spite of its end", slices.Contains(keys, "queued"), false)
			if test.is == context.Canceled {
				equal(t, "streams", len(service.streams()), 1)
			}
		})
	}
}

// A stream that was given up still answers those who wait longer.
func TestAStreamThatIsGivenUpStillAnswers(t *testing.T) {
	service := newGated()
	client := serve(t, service, timecache.Options{Timeout: patience})
	patient := putting(t.Context(), client, "patient")
	shared(t, client, 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	refused(t, receive(t, putting(ctx, client, "hasty")), codes.DeadlineExceeded, "")
	service.answers <- nil
	equal(t, "patient", receive(t, patient), nil)
}

func TestABrokenStreamIsReplaced(t *testing.T) {
	drain := status.FromProto(refusal(t, codes.Unavailable, timecache.Draining)).Err()
	for name, test := range map[string]struct {
		end          error
		reason       timecache.Reason
		maybeApplied bool
	}{
		"broken":   {status.Error(codes.Unavailable, "reset"), "", true},
		"draining": {drain, timecache.Draining, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := newGated()
			client := serve(t, service, timecache.Options{Timeout: patience, Retry: fast})
			unsafe := putting(t.Context(), client, "unsafe")
			shared(t, client, 0, 1)
			var safe <-chan error
			for sent := 1; sent < timecache.MaxSharedMessages; sent++ {
				safe = putting(t.Context(), client, "safe", timecache.Repeatable())
				shared(t, client, 0, sent+1)
			}
			queued := putting(t.Context(), client, "queued")
			shared(t, client, 1, timecache.MaxSharedMessages)
			service.answers <- test.end
			err := receive(t, unsafe)
			refused(t, err, codes.Unavailable, test.reason)
			equal(t, "may be applied", maybeApplied(t, err), test.maybeApplied)
			var failure *timecache.Error
			errors.As(err, &failure)
			equal(t, "request id", failure.RequestID, service.streams()[0])
			close(service.answers)
			equal(t, "queued", receive(t, queued), nil)
			if safe != nil {
				equal(t, "safe", receive(t, safe), nil)
			}
			equal(t, "streams", len(service.streams()), 2)
		})
	}
}

// So a stream on a connection that is old ends: behind an answer, and with nothing applied.
func TestAStreamThatEndsBehindAnAnswerIsReplaced(t *testing.T) {
	service := newGated()
	client := serve(t, service, timecache.Options{Timeout: patience})
	ends := fillStream(t, client)
	service.answers <- nil
	equal(t, "answered", receive(t, ends[0]), nil)
	ends = append(ends[1:], putting(t.Context(), client, "last"))
	shared(t, client, 0, timecache.MaxSharedMessages)
	service.answers <- status.FromProto(refusal(t, codes.Unavailable, timecache.Draining)).Err()
	close(service.answers)
	for _, end := range ends {
		equal(t, "not answered", receive(t, end), nil)
	}
	equal(t, "streams", len(service.streams()), 2)
}

func TestAnUnknownNamespaceTouchesNoOther(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	absent := client.In("absent")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := client.Put(t.Context(), fmt.Sprint(i), nil); err != nil {
				t.Error(err)
			}
			_, _, err := absent.Get(t.Context(), "k", timecache.RequestID("mine"))
			var failure *timecache.Error
			if !errors.As(err, &failure) || failure.Reason != timecache.NamespaceNotFound || failure.MaybeApplied ||
				failure.RequestID != "mine" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, "entries", must(client.Size(t.Context()))(t).Entries, 20)
}

func TestWhatGoesByItsOwnRPC(t *testing.T) {
	other := metadata.AppendToOutgoingContext(t.Context(), "x-other", "1")
	for name, put := range map[string]func(*timecache.Client) error{
		"large":        func(c *timecache.Client) error { _, err := c.Put(t.Context(), "k", make([]byte, 64<<10)); return err },
		"own metadata": func(c *timecache.Client) error { _, err := c.Put(other, "k", nil); return err },
		"turned off": func(c *timecache.Client) error {
			_, err := c.Put(t.Context(), "k", nil, timecache.Batching(false))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := newGated()
			client := serve(t, service, timecache.Options{})
			equal(t, "error", put(client), nil)
			_, unary := service.noted()
			equal(t, "unary", unary, []string{"k"})
			equal(t, "streams", len(service.streams()), 0)
		})
	}
	// A server without Pipeline.
	service := &requests{}
	client := serve(t, service, timecache.Options{})
	for range 2 {
		put(t, client, "k")
	}
	equal(t, "namespace", service.put.Namespace, timecache.DefaultNamespace)
}

func TestAnAnswerWithoutRoomIsAskedForAlone(t *testing.T) {
	service := newGated()
	service.refuse = &pb.OperationResult{Result: &pb.OperationResult_Error{
		Error: refusal(t, codes.ResourceExhausted, timecache.MaxResponseBytes)}}
	close(service.answers)
	entry, found, err := serve(t, service, timecache.Options{}).Get(t.Context(), "k")
	if err != nil || !found || string(entry.Value) != "alone" {
		t.Error(entry, found, err)
	}
}

func TestACallsMetadataGoesWithItsOperation(t *testing.T) {
	service := newGated()
	close(service.answers)
	client := serve(t, service, timecache.Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "of-all", "traceparent", "tp")
	must(client.Put(ctx, "k", nil, timecache.RequestID("of-this")))(t)
	equal(t, "id", service.newest.RequestId, "of-this")
	equal(t, "traceparent", service.newest.Traceparent, "tp")
	service.refuse = &pb.OperationResult{Result: &pb.OperationResult_Error{
		Error: refusal(t, codes.FailedPrecondition, timecache.KeyExists)}}
	for want, options := range map[string][]timecache.PutOption{"mine": {timecache.RequestID("mine")}, service.streams()[0]: nil} {
		_, err := client.Put(t.Context(), "k", nil, options...)
		var failure *timecache.Error
		errors.As(err, &failure)
		equal(t, "request id", failure.RequestID, want)
	}
}

// The longest idle stream makes room for another; where none is idle, a call goes alone.
func TestIdleStreamsAreClosed(t *testing.T) {
	service := newGated()
	client := serve(t, service, timecache.Options{Timeout: patience})
	for i := range 70 {
		end := putting(t.Context(), client.In(fmt.Sprint(i)), "k")
		service.answers <- nil
		equal(t, "error", receive(t, end), nil)
	}
	eventually(t, func() bool { return service.opened() == 64 })
	var ends []<-chan error
	for i := range 64 {
		one := client.In(fmt.Sprint(i))
		ends = append(ends, putting(t.Context(), one, "k"))
		shared(t, one, 0, 1)
	}
	must(client.In("one more").Put(t.Context(), "k", nil))(t)
	_, unary := service.noted()
	equal(t, "unary", len(unary), 1)
	for range ends {
		service.answers <- nil
	}
	for _, end := range ends {
		equal(t, "error", receive(t, end), nil)
	}
}

func TestCloseEndsSharedCalls(t *testing.T) {
	service := newGated()
	client := serve(t, service, timecache.Options{Timeout: patience})
	ends := fillStream(t, client)
	ends = append(ends, putting(t.Context(), client, "queued"))
	shared(t, client, 1, timecache.MaxSharedMessages)
	client.Close()
	for _, end := range ends {
		refused(t, receive(t, end), codes.Canceled, "")
	}
	refused(t, receive(t, putting(t.Context(), client, "later")), codes.Canceled, "")
}

// unsteady applies what it gets, and ends streams at random: before, after, and with the answer.
type unsteady struct {
	pb.UnimplementedTimeCacheServiceServer
	mu      sync.Mutex
	random  *rand.Rand
	applied map[string]int
}

func (u *unsteady) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	reset := status.Error(codes.Unavailable, "reset")
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		u.mu.Lock()
		chance := u.random.IntN(100)
		if chance != 0 {
			for _, operation := range request.Operations {
				u.applied[keyOf(operation)]++
			}
		}
		u.mu.Unlock()
		if chance < 2 {
			return reset
		}
		if err := stream.Send(answersTo(request)); err != nil || chance == 2 {
			return reset
		}
	}
}

// Each call ends once and none gets another's answer, whatever ends calls and streams.
func TestCallsEndOnceWhateverHappens(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed:", seed)
	service := &unsteady{random: rand.New(rand.NewPCG(seed, 0)), applied: map[string]int{}}
	client := serve(t, service, timecache.Options{Timeout: patience, Retry: fast})
	var all sync.WaitGroup
	var succeeded, failed atomic.Int64
	results := make([]map[string]error, 32)
	for caller := range results {
		random := rand.New(rand.NewPCG(seed, uint64(caller)+1))
		results[caller] = map[string]error{}
		all.Go(func() {
			value := make([]byte, 1000)
			for i := range 300 {
				value[i]++ // It is the caller's again, as soon as the call has ended.
				key := fmt.Sprint(caller, "-", i)
				ctx, cancel := context.WithCancel(t.Context())
				after := time.Duration(random.IntN(2000)) * time.Microsecond
				switch random.IntN(4) {
				case 0:
					time.AfterFunc(after, cancel)
				case 1:
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), after)
				}
				var err error
				if random.IntN(2) == 0 {
					_, err = client.Put(ctx, key, value)
					results[caller][key] = err
				} else if entry, found, failure := client.Get(ctx, key); failure != nil {
					err = failure
				} else if !found || string(entry.Value) != key {
					t.Errorf("%s got %+v", key, entry)
				}
				if err != nil && ctx.Err() == nil {
					refused(t, err, codes.Unavailable, "")
				}
				cancel()
				if err == nil {
					succeeded.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	t.Log("succeeded:", succeeded.Load(), "failed:", failed.Load())
	service.mu.Lock()
	defer service.mu.Unlock()
	for _, result := range results {
		for key, err := range result {
			times := service.applied[key]
			if err == nil && times != 1 || times > 1 || err != nil && !maybeApplied(t, err) && times > 0 {
				t.Errorf("%s was applied %d times: %v", key, times, err)
			}
		}
	}
}

// With a server that dies or stops, and comes back, under calls: the same as with calls of their
// own.
func TestCallsGoOnOverARestart(t *testing.T) {
	for _, batching := range []bool{true, false} {
		t.Run(fmt.Sprint("batching ", batching), func(t *testing.T) {
			server := timecachetest.Start(t)
			client := server.Client(timecache.Options{Batching: &batching})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var all sync.WaitGroup
			for caller := range 8 {
				all.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						key := fmt.Sprint(caller, "-", i)
						_, err := client.Put(ctx, key, []byte(key))
						entry, found, _ := client.Get(ctx, key)
						if found && string(entry.Value) != key {
							t.Error(key, entry)
						}
						if err != nil && ctx.Err() == nil && status.Code(err) != codes.Unavailable {
							t.Error(err)
						}
					}
				})
			}
			for _, end := range []func(){server.Kill, server.Stop} {
				end()
				server.Restart()
				eventually(t, func() bool { _, err := client.Put(t.Context(), "k", nil); return err == nil })
			}
			cancel()
			all.Wait()
		})
	}
}
