package timecache_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

func TestContexts(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := client.Get(ctx, "k")
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = client.Put(ctx, "k", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	refused(t, err, codes.DeadlineExceeded, "")
}

// What the server has answered is told, also where the context has ended since.
func TestAnswerBeforeACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, &flaky{fail: []error{status.Error(codes.FailedPrecondition, "no")}}, timecache.Options{
		Batching: new(false), DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
			request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			defer cancel()
			return invoke(ctx, method, request, response, conn, options...)
		})}})
	_, err := client.Put(ctx, "k", nil)
	refused(t, err, codes.FailedPrecondition, "")
}

// Close ends what is under way, and may come twice.
func TestClose(t *testing.T) {
	server := timecachetest.Start(t)
	client := must(timecache.NewClient(server.Address, timecache.Options{}))(t)
	watching := make(chan bool, 1)
	ends := make(chan error, 3)
	go func() {
		for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
			if err != nil {
				ends <- err
				return
			}
			watching <- true
		}
	}()
	worker := client.Worker("g", nil, timecache.WorkerOptions{})
	go func() { ends <- worker.Run(t.Context()) }()
	receive(t, watching)
	joined(t, client, "g")
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		refused(t, receive(t, ends), codes.Canceled, "")
	}
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Canceled, "")
}

// What has ended leaves no goroutine behind.
func TestNoGoroutineIsLeft(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	before := runtime.NumGoroutine()
	for range 5 {
		client := must(timecache.NewClient(server.Address, timecache.Options{}))(t)
		must(client.Put(t.Context(), "k", []byte("v")))(t)
		for range client.Scan(t.Context()) {
			break
		}
		for range client.Watch(t.Context(), timecache.WatchOptions{Reconnect: timecache.Reconnect{MaxSilence: time.Hour}}) {
			break
		}
		next, stop := iter.Pull2(client.WatchExpiring(t.Context(), time.Second, timecache.ExpiringOptions{}))
		next()
		stop()
		closed := client.Pipeline(t.Context(), timecache.PipelineOptions{})
		if err := closed.Do(t.Context(), timecache.GetOperation("k")).Err; err != nil {
			t.Error(err)
		}
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		client.Pipeline(ctx, timecache.PipelineOptions{}).Do(ctx, timecache.GetOperation("k"))
		end := make(chan error, 1)
		go func() { end <- client.Worker("g", nil, timecache.WorkerOptions{}).Run(ctx) }()
		joined(t, client, "g")
		cancel()
		if err := receive(t, end); err != nil {
			t.Error(err)
		}
		client.Close()
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

// An address that never leads to a server is told at once.
func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{"127.0.0.1:7171": true, "[::1]:7171": true, "cache:7171": true,
		"unix:/run/timecached": true, "unix-abstract:t": true, "dns:///cache:7171": true, "passthrough:///cache:7171": true,
		"": false, "cache": false, "127.0.0.1": false, "::1": false, "cache:": false, "http://cache:7171": false,
		"https://cache:7171": false} {
		client, err := timecache.NewClient(address, timecache.Options{})
		if equal(t, address, err == nil, good); err != nil {
			refused(t, err, codes.InvalidArgument, "")
			continue
		}
		client.Close()
	}
}

// A host without an address is named.
func TestUnknownHost(t *testing.T) {
	builder := manual.NewBuilderWithScheme("test")
	builder.InitialState(resolver.State{})
	client := must(timecache.NewClient("test:///no-such-host:7171", timecache.Options{
		DialOptions: []grpc.DialOption{grpc.WithResolvers(builder)}}))(t)
	defer client.Close()
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Unavailable, "")
	errs := []error{err}
	for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
		errs = append(errs, err)
	}
	for _, err := range errs {
		if strings.Count(err.Error(), "no-such-host") != 1 {
			t.Error(err)
		}
	}
}

func TestNoServer(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener.Close()
	client := must(timecache.NewClient(listener.Addr().String(), timecache.Options{}))(t)
	defer client.Close()
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Unavailable, "")
	for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
		refused(t, err, codes.Unavailable, "")
	}
	refused(t, client.Worker("g", nil, timecache.WorkerOptions{}).Run(t.Context()), codes.Unavailable, "")
}

func TestRetries(t *testing.T) {
	lost := status.Error(codes.Unavailable, "lost")
	refusal := status.Error(codes.FailedPrecondition, "no")
	get := func(ctx context.Context, c *timecache.Client) error {
		_, _, err := c.Get(ctx, "k", timecache.RequestID("id"), timecache.Traceparent("tp"))
		return err
	}
	put := func(ctx context.Context, c *timecache.Client) error { _, err := c.Put(ctx, "k", nil); return err }
	for _, test := range []struct {
		name  string
		call  func(context.Context, *timecache.Client) error
		fail  []error
		calls int
		code  codes.Code
	}{
		{"a get comes through", get, []error{lost, status.Error(codes.Internal, "stream")}, 3, codes.OK},
		{"a get gives up", get, []error{lost, lost, lost}, 3, codes.Unavailable},
		{"a refusal stands", get, []error{refusal}, 1, codes.FailedPrecondition},
		{"a put is done once", put, []error{lost}, 1, codes.Unavailable},
		{"an append is done once", func(ctx context.Context, c *timecache.Client) error {
			_, err := c.Append(ctx, "k", nil)
			return err
		}, []error{lost}, 1, codes.Unavailable},
		{"a put that is repeatable", func(ctx context.Context, c *timecache.Client) error {
			_, err := c.Put(ctx, "k", nil, timecache.Repeatable())
			return err
		}, []error{lost}, 2, codes.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := &flaky{fail: test.fail}
			client := serve(t, service, timecache.Options{Token: "secret", Batching: new(false),
				Retry: timecache.RetryPolicy{MinPause: time.Millisecond}})
			err := test.call(t.Context(), client)
			equal(t, "code", status.Code(err), test.code)
			equal(t, "calls", len(service.calls), test.calls)
			equal(t, "token", service.calls[0].Get("authorization"), []string{"Bearer secret"})
			if service.limit <= 0 || service.limit > timecache.DefaultTimeout {
				t.Error("deadline:", service.limit)
			}
			if _, gets := strings.CutPrefix(test.name, "a get"); gets {
				last := service.calls[len(service.calls)-1]
				equal(t, "id", last.Get("x-request-id"), []string{"id"})
				equal(t, "trace", last.Get("traceparent"), []string{"tp"})
			}
		})
	}
}

func TestErrorDetails(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{MaxOperationsPerSecond: new(uint32(1))})
	var err error
	for range 3 {
		if _, err = client.Put(t.Context(), "k", nil, timecache.RequestID("my-id")); err != nil {
			break
		}
	}
	refused(t, err, codes.ResourceExhausted, timecache.MaxOperationRate)
	var failure *timecache.Error
	errors.As(err, &failure)
	if failure.RetryDelay <= 0 || failure.RequestID != "my-id" {
		t.Errorf("%+v", failure)
	}
	if text := err.Error(); !strings.Contains(text, "ResourceExhausted (MAX_OPERATION_RATE)") {
		t.Error(text)
	}
	if errors.Is(err, timecache.KeyExists) || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
