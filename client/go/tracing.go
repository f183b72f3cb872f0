package timecache

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// Tracing makes spans of what a client does: see [Options.Tracing]. Package timecacheotel has
// one for OpenTelemetry. Safe for concurrent use.
type Tracing interface {
	// StartCall begins the span of a call with all of its attempts, of a scan, or of a
	// pipeline from its begin to its end. The call is made with the context that it returns,
	// in whose outgoing metadata is what goes to the server: "traceparent".
	StartCall(ctx context.Context, call TracedCall) (context.Context, TracedSpan)
	// StartHandler begins the span of a worker's handler, which gets the context that it
	// returns; end takes how the event is settled, and the handler's error.
	StartHandler(ctx context.Context, group string, event *ExpiredEvent) (handler context.Context, end func(Action, error))
}

// TracedCall is what a span is about.
type TracedCall struct {
	// Method is gRPC's: "/timecache.v1.TimeCacheService/Put".
	Method string
	// Namespace is empty where the call is not about one.
	Namespace string
	// Target is the address that the call goes to first, as it was given; empty with
	// [NewClientFromConn] where it is not known.
	Target string
}

// TracedSpan is a span of [Tracing.StartCall]. By one goroutine at a time.
type TracedSpan interface {
	// Retry is called before each further attempt, with why the last one failed.
	Retry(why error)
	// End is called once, last. Nil: the call succeeded.
	End(err error)
}

type noSpan struct{}

func (noSpan) Retry(error) {}
func (noSpan) End(error)   {}

func (c *Client) startCall(ctx context.Context, method string, request any) (context.Context, TracedSpan) {
	namespace := ""
	switch request := request.(type) {
	case interface{ GetNamespace() string }:
		namespace = request.GetNamespace()
	case *pb.UpdateNamespaceRequest:
		namespace = request.GetNamespace().GetName()
	case *pb.UpdateGroupRequest:
		namespace = request.GetGroup().GetNamespace()
	case interface{ GetName() string }: // Of a NamespaceService.
		namespace = request.GetName()
	}
	return c.startSpan(ctx, method, namespace)
}

func (c *Client) startSpan(ctx context.Context, method, namespace string) (context.Context, TracedSpan) {
	if c.options.Tracing == nil {
		return ctx, noSpan{}
	}
	call := TracedCall{Method: method, Namespace: namespace, Target: c.conn.Target()}
	ctx, span := c.options.Tracing.StartCall(ctx, call)
	return context.WithValue(ctx, onRetry{}, span.Retry), span
}

// onRetry is the key of what a call's context has called, a func(error), before it is made at
// another address.
type onRetry struct{}

// traceparentOf is what a call brings in its metadata, if an entry can keep it, and its trace is
// sampled: nobody finds the others.
func traceparentOf(ctx context.Context) string {
	md, _ := metadata.FromOutgoingContext(ctx)
	values := md.Get("traceparent")
	if len(values) == 0 || len(values[0]) != 55 || !strings.HasPrefix(values[0], "00-") {
		return ""
	}
	if flags, err := strconv.ParseUint(values[0][53:], 16, 8); err != nil || flags&1 == 0 {
		return ""
	}
	return values[0]
}

// tracesEntries says whether what a call stores keeps its traceparent.
func (c *Client) tracesEntries(s *settings) bool {
	if s.traceEntry != nil {
		return *s.traceEntry
	}
	return c.options.TraceEntries
}

// keepTraceparent puts the call's traceparent into its request, where that is asked for, the
// kind of request keeps one and it has none.
func (c *Client) keepTraceparent(ctx context.Context, request any, s *settings) {
	batch, isBatch := request.(*pb.ExecuteRequest)
	if !c.tracesEntries(s) && (!isBatch || s.tracedOperations == nil) {
		return
	}
	traceparent := traceparentOf(ctx)
	if traceparent == "" {
		return
	}
	if !isBatch {
		if field := traceparentIn(request); field != nil && *field == "" {
			*field = traceparent
		}
		return
	}
	for i, operation := range batch.Operations {
		wants := c.tracesEntries(s)
		if i < len(s.tracedOperations) && s.tracedOperations[i] != nil {
			wants = *s.tracedOperations[i]
		}
		if wants {
			batch.Operations[i] = withTraceparent(operation, traceparent)
		}
	}
}

// traceparentIn is the field of a request; nil: it has none.
func traceparentIn(request any) *string {
	switch request := request.(type) {
	case *pb.PutRequest:
		return &request.Traceparent
	case *pb.AppendRequest:
		return &request.Traceparent
	case *pb.CombineRequest:
		return &request.Traceparent
	case *pb.GatherRequest:
		return &request.Traceparent
	}
	return nil
}

// withTraceparent returns the operation with a traceparent, if its kind keeps one and it has
// none. The operation itself, which may be part of other requests, stays as it is.
func withTraceparent(operation *pb.Operation, traceparent string) *pb.Operation {
	request := requestOf(operation)
	if field := traceparentIn(request); field == nil || *field != "" {
		return operation
	}
	copied := shallow(request)
	*traceparentIn(copied) = traceparent
	switch copied := copied.(type) {
	case *pb.PutRequest:
		return &pb.Operation{Request: &pb.Operation_Put{Put: copied}}
	case *pb.AppendRequest:
		return &pb.Operation{Request: &pb.Operation_Append{Append: copied}}
	case *pb.CombineRequest:
		return &pb.Operation{Request: &pb.Operation_Combine{Combine: copied}}
	case *pb.GatherRequest:
		return &pb.Operation{Request: &pb.Operation_Gather{Gather: copied}}
	}
	return operation
}

// requestOf is the one of an operation that may keep a traceparent; nil: it has none.
func requestOf(operation *pb.Operation) proto.Message {
	switch request := operation.Request.(type) {
	case *pb.Operation_Put:
		return request.Put
	case *pb.Operation_Append:
		return request.Append
	case *pb.Operation_Combine:
		return request.Combine
	case *pb.Operation_Gather:
		return request.Gather
	}
	return nil
}

// shallow copies a message, but not the bytes that it refers to.
func shallow(message proto.Message) proto.Message {
	from := message.ProtoReflect()
	to := from.New()
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	return to.Interface()
}
