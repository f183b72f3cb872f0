package timecacheotel_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecacheotel"
	"timecached.dev/client/go/timecachetest"
)

// fake is a server that keeps what comes, and loses its first calls.
type fake struct {
	pb.UnimplementedTimeCacheServiceServer
	mu       sync.Mutex
	lose     int
	puts     []*pb.PutRequest
	batches  []*pb.ExecuteRequest
	metadata []metadata.MD
	event    *pb.ExpiredEvent
	settled  chan *pb.SettleExpiredRequest
}

func (f *fake) called(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.metadata = append(f.metadata, md)
	if f.lose > 0 {
		f.lose--
		return status.Error(grpccodes.Unavailable, "lost")
	}
	return nil
}

func (f *fake) Get(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, error) {
	return &pb.GetResponse{}, f.called(ctx)
}

func (f *fake) Put(ctx context.Context, request *pb.PutRequest) (*pb.PutResponse, error) {
	f.puts = append(f.puts, request)
	return &pb.PutResponse{Version: 1}, f.called(ctx)
}

func results(request *pb.ExecuteRequest) *pb.ExecuteResponse {
	response := &pb.ExecuteResponse{}
	for range request.Operations {
		response.Results = append(response.Results, &pb.OperationResult{Result: &pb.OperationResult_Put{Put: &pb.PutResponse{}}})
	}
	return response
}

func (f *fake) Execute(ctx context.Context, request *pb.ExecuteRequest) (*pb.ExecuteResponse, error) {
	f.batches = append(f.batches, request)
	return results(request), f.called(ctx)
}

func (f *fake) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	if err := f.called(stream.Context()); err != nil {
		return err
	}
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		f.mu.Lock()
		f.batches = append(f.batches, request)
		f.mu.Unlock()
		if err := stream.Send(results(request)); err != nil {
			return err
		}
	}
}

func (f *fake) ConsumeExpired(request *pb.ConsumeExpiredRequest, stream grpc.ServerStreamingServer[pb.ConsumeExpiredResponse]) error {
	if err := stream.Send(&pb.ConsumeExpiredResponse{Namespace: request.Namespaces[0], Events: []*pb.ExpiredEvent{f.event}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (f *fake) SettleExpired(_ context.Context, request *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
	f.settled <- request
	return &pb.SettleExpiredResponse{Results: []*pb.SettleResult{{}}}, nil
}

// traced has a client of the fake, and the spans that end.
func traced(t *testing.T, f *fake, options timecache.Options) (*timecache.Client, *tracetest.InMemoryExporter, int) {
	t.Helper()
	server := grpc.NewServer()
	pb.RegisterTimeCacheServiceServer(server, f)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	options.Tracing = timecacheotel.New(timecacheotel.WithTracerProvider(provider))
	options.Namespace = "orders"
	if options.Batching == nil {
		options.Batching = new(false)
	}
	options.Retry = timecache.RetryPolicy{MinPause: time.Millisecond, MaxPause: time.Millisecond}
	client, err := timecache.NewClient(listener.Addr().String(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, exporter, listener.Addr().(*net.TCPAddr).Port
}

func attributes(span tracetest.SpanStub) map[attribute.Key]string {
	all := map[attribute.Key]string{}
	for _, one := range span.Attributes {
		all[one.Key] = one.Value.String()
	}
	return all
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func traceparent(span trace.SpanContext) string {
	return timecacheotel.Traceparent(trace.ContextWithSpanContext(context.Background(), span))
}

func TestACallHasASpan(t *testing.T) {
	f := &fake{lose: 1}
	client, exporter, port := traced(t, f, timecache.Options{})
	if _, _, err := client.Get(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	spans := exporter.GetSpans()
	if len(spans) != 1 {
		t.Fatal("spans:", spans)
	}
	span := spans[0]
	expect(t, "name", span.Name, "timecache.v1.TimeCacheService/Get")
	expect(t, "kind", span.SpanKind, trace.SpanKindClient)
	expect(t, "status", span.Status.Code, codes.Unset)
	for key, want := range map[attribute.Key]string{"rpc.system": "grpc", "rpc.service": "timecache.v1.TimeCacheService",
		"rpc.method": "Get", "rpc.grpc.status_code": "0", "server.address": "127.0.0.1", "server.port": strconv.Itoa(port),
		"timecached.namespace": "orders"} {
		expect(t, string(key), attributes(span)[key], want)
	}
	if len(span.Events) != 1 || span.Events[0].Name != "retry" {
		t.Error("events:", span.Events)
	}
	for _, md := range f.metadata {
		expect(t, "metadata", md.Get("traceparent")[0], traceparent(span.SpanContext))
	}
	expect(t, "attempts", len(f.metadata), 2)
}

// On a shared stream the operation has the traceparent, and the entry, if asked for.
func TestACallOnASharedStreamHasASpan(t *testing.T) {
	f := &fake{lose: 1}
	client, exporter, _ := traced(t, f, timecache.Options{Batching: new(true)})
	if _, err := client.Put(t.Context(), "k", nil, timecache.Repeatable(), timecache.TraceEntry); err != nil {
		t.Fatal(err)
	}
	span := exporter.GetSpans()[0]
	expect(t, "name", span.Name, "timecache.v1.TimeCacheService/Put")
	expect(t, "namespace", attributes(span)["timecached.namespace"], "orders")
	expect(t, "retries", len(span.Events), 1)
	operation := f.batches[0].Operations[0]
	expect(t, "call's", operation.Traceparent, traceparent(span.SpanContext))
	expect(t, "entry's", operation.GetPut().Traceparent, traceparent(span.SpanContext))
	expect(t, "streams", len(f.metadata), 2)
}

func TestAFailureIsTheSpansStatus(t *testing.T) {
	client, exporter, _ := traced(t, &fake{lose: 1}, timecache.Options{})
	if _, err := client.Put(t.Context(), "k", nil); err == nil {
		t.Fatal("a put is done once")
	}
	span := exporter.GetSpans()[0]
	expect(t, "status", span.Status.Code, codes.Error)
	expect(t, "code", attributes(span)["rpc.grpc.status_code"], "14")
	expect(t, "type", attributes(span)["error.type"], "Unavailable")
}

func TestEntriesKeepTheTraceOnRequest(t *testing.T) {
	f := &fake{}
	client, exporter, _ := traced(t, f, timecache.Options{})
	own := timecache.EntryTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	for _, options := range [][]timecache.PutOption{{}, {timecache.TraceEntry}, {timecache.TraceEntry, own}} {
		if _, err := client.Put(t.Context(), "k", nil, options...); err != nil {
			t.Fatal(err)
		}
	}
	spans := exporter.GetSpans()
	expect(t, "unasked", f.puts[0].Traceparent, "")
	expect(t, "asked", f.puts[1].Traceparent, traceparent(spans[1].SpanContext))
	expect(t, "its own", f.puts[2].Traceparent, string(own))
	unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	ctx := trace.ContextWithRemoteSpanContext(t.Context(), unsampled)
	if _, err := client.Put(ctx, "k", nil, timecache.TraceEntry); err != nil {
		t.Fatal(err)
	}
	expect(t, "not sampled", f.puts[3].Traceparent, "")
}

func TestTheClientsEntriesKeepTheirTrace(t *testing.T) {
	f := &fake{}
	client, exporter, _ := traced(t, f, timecache.Options{TraceEntries: true})
	if _, err := client.Put(t.Context(), "k", nil, timecache.TraceEntryOption(false)); err != nil {
		t.Fatal(err)
	}
	expect(t, "not this one", f.puts[0].Traceparent, "")
	operation := timecache.PutOperation("a", []byte("value"))
	operations := []timecache.Operation{operation, timecache.GetOperation("b"),
		timecache.PutOperation("c", nil, timecache.TraceEntryOption(false))}
	for range 2 { // An operation may be done again, in another trace.
		if _, err := client.Execute(t.Context(), operations); err != nil {
			t.Fatal(err)
		}
	}
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	if result := pipeline.Do(t.Context(), operation); result.Err != nil {
		t.Fatal(result.Err)
	}
	if err := pipeline.Close(); err != nil {
		t.Fatal(err)
	}
	spans := exporter.GetSpans()
	for i, batch := range f.batches {
		expect(t, "put", batch.Operations[0].GetPut().Traceparent, traceparent(spans[i+1].SpanContext))
		expect(t, "value", string(batch.Operations[0].GetPut().Value), "value")
	}
	expect(t, "not the third", f.batches[0].Operations[2].GetPut().Traceparent, "")
	expect(t, "pipeline", spans[3].Name, "timecache.v1.TimeCacheService/Pipeline")
}

func TestAPipelineOfSafeOperationsGoesOn(t *testing.T) {
	client, exporter, _ := traced(t, &fake{lose: 2}, timecache.Options{})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	result := pipeline.Do(t.Context(), timecache.PutOperation("k", nil, timecache.IdempotencyID("1")))
	if err := errors.Join(result.Err, pipeline.Close()); err != nil {
		t.Fatal(err)
	}
	expect(t, "retries", len(exporter.GetSpans()[0].Events), 2)
}

func TestAHandlersSpanLinksToThePut(t *testing.T) {
	put := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	f := &fake{settled: make(chan *pb.SettleExpiredRequest, 10), event: &pb.ExpiredEvent{Namespace: "orders",
		Key: []byte("order:17"), EventId: 42, Attempt: 2, DeliveryToken: []byte("t"), Traceparent: put}}
	client, exporter, _ := traced(t, f, timecache.Options{})
	ctx, stop := context.WithCancel(t.Context())
	worker := client.Worker("cancel", func(ctx context.Context, event *timecache.ExpiredEvent) error {
		defer stop()
		if _, _, err := client.Get(ctx, event.Key); err != nil {
			t.Error(err)
		}
		return timecache.Nack(time.Minute).Because(errors.New("no card"))
	}, timecache.WorkerOptions{OnError: func(error) {}})
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	spans := exporter.GetSpans()
	if len(spans) != 2 { // What the worker calls by itself has none.
		t.Fatal("spans:", spans)
	}
	call, handler := spans[0], spans[1]
	expect(t, "parent", call.Parent.SpanID(), handler.SpanContext.SpanID())
	expect(t, "name", handler.Name, "process orders")
	expect(t, "kind", handler.SpanKind, trace.SpanKindConsumer)
	expect(t, "status", handler.Status, sdk.Status{Code: codes.Error, Description: "no card"})
	if len(handler.Links) != 1 || traceparent(handler.Links[0].SpanContext) != put {
		t.Error("links:", handler.Links)
	}
	for key, want := range map[attribute.Key]string{"messaging.system": "timecached", "messaging.operation.type": "process",
		"messaging.destination.name": "orders", "messaging.consumer.group.name": "cancel", "messaging.message.id": "42",
		"timecached.attempt": "2", "timecached.settlement": "nack"} {
		expect(t, string(key), attributes(handler)[key], want)
	}
}

// Also where it goes to another address, as there is nobody at the first one.
func TestAnotherAddressIsARetry(t *testing.T) {
	f := &fake{}
	server := grpc.NewServer()
	pb.RegisterTimeCacheServiceServer(server, f)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Stop()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	client, err := timecache.NewClient("127.0.0.1:1,"+listener.Addr().String(),
		timecache.Options{Batching: new(false), Tracing: timecacheotel.New(timecacheotel.WithTracerProvider(provider))})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	expect(t, "retries", len(exporter.GetSpans()[0].Events), 1)
	expect(t, "first address", attributes(exporter.GetSpans()[0])["server.port"], "1")
}

// From the put over a real server to the handler.
func TestTheServerKeepsTheTrace(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	exporter := tracetest.NewInMemoryExporter()
	tracing := timecacheotel.New(timecacheotel.WithTracerProvider(sdk.NewTracerProvider(sdk.WithSyncer(exporter))))
	client := server.Client(timecache.Options{Tracing: tracing, TraceEntries: true})
	if _, err := client.CreateGroup(t.Context(), "g", timecache.GroupOptions{}, timecache.FromNow); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), "k", nil, timecache.TTL(time.Second)); err != nil {
		t.Fatal(err)
	}
	put := exporter.GetSpans()[1]
	if _, err := timecachetest.NewClock(client).Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	worker := client.Worker("g", func(context.Context, *timecache.ExpiredEvent) error {
		stop()
		return nil
	}, timecache.WorkerOptions{})
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	spans := exporter.GetSpans()
	handler := spans[len(spans)-1]
	if len(handler.Links) != 1 || !handler.Links[0].SpanContext.Equal(put.SpanContext.WithRemote(true)) {
		t.Error("links:", handler.Links, "put:", put.SpanContext)
	}
}

// Without an SDK nothing is sent, and a call costs little more.
func TestWithoutAnSDK(t *testing.T) {
	tracing := timecacheotel.New()
	call := timecache.TracedCall{Method: "/timecache.v1.TimeCacheService/Put", Namespace: "n", Target: "unix:/run/t"}
	ctx, span := tracing.StartCall(t.Context(), call)
	span.Retry(errors.New("lost"))
	span.End(nil)
	if md, has := metadata.FromOutgoingContext(ctx); has {
		t.Error("metadata:", md)
	}
	allocations := testing.AllocsPerRun(100, func() {
		_, span := tracing.StartCall(t.Context(), call)
		span.End(nil)
	})
	if allocations > 6 {
		t.Error("allocations:", allocations)
	} else {
		t.Log("allocations:", allocations)
	}
}
