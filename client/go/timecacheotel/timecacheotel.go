// Package timecacheotel traces a client of timecached by OpenTelemetry.
//
//	client, err := timecache.NewClient("127.0.0.1:7171", timecache.Options{
//		Tracing:      timecacheotel.New(),
//		TraceEntries: true,
//	})
//
// A call has a span of the kind client, with the attributes of OpenTelemetry's conventions for
// RPC (rpc.system, rpc.service, rpc.method, rpc.grpc.status_code, server.address, server.port)
// and timecached.namespace; each further attempt is an event "retry" in it. So has a scan, and a
// pipeline from its begin to its end. A plain call on the stream that calls share has its
// traceparent there, too, but no tracestate, for which the server has no use. A worker's handler has a span of the kind consumer, with the
// attributes of the conventions for messaging, and a link to the span of the call that stored the
// entry, where the entry has kept its traceparent: timecache.TraceEntry. Watches, and what a
// worker calls by itself, have none.
//
// It needs OpenTelemetry's API alone. Where no SDK is registered, a call has four small
// allocations more, and nothing is sent.
package timecacheotel

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"timecached.dev/client/go"
)

// Tracing is a [timecache.Tracing]: what Options.Tracing takes. Safe for concurrent use.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator

	// What calls of a kind have in common, so that it is made once.
	calls  sync.Map // From timecache.TracedCall to *callKind.
	callsN atomic.Int64
}

var _ timecache.Tracing = (*Tracing)(nil)

// Most kinds of calls that are remembered: programs may have any number of namespaces.
const maxKinds = 4096

type callKind struct {
	name    string
	options []trace.SpanStartOption
}

// Option of [New].
type Option func(*Tracing)

// WithTracerProvider takes the spans' tracer from there, in place of OpenTelemetry's global
// provider.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(t *Tracing) { t.tracer = tracerOf(provider) }
}

// WithPropagator puts into a call's metadata what this one has, in place of the W3C trace context
// (traceparent and tracestate). Entries keep a traceparent alone.
func WithPropagator(propagator propagation.TextMapPropagator) Option {
	return func(t *Tracing) { t.propagator = propagator }
}

// New makes a tracing, of OpenTelemetry's global tracer provider unless options say otherwise;
// that one may be registered later.
func New(options ...Option) *Tracing {
	t := &Tracing{propagator: propagation.TraceContext{}}
	for _, option := range options {
		option(t)
	}
	if t.tracer == nil {
		t.tracer = tracerOf(otel.GetTracerProvider())
	}
	return t
}

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	return provider.Tracer("timecached.dev/client/go")
}

// StartCall begins the span of a call, and puts its context into the outgoing metadata.
func (t *Tracing) StartCall(ctx context.Context, call timecache.TracedCall) (context.Context, timecache.TracedSpan) {
	kind := t.kind(call)
	ctx, span := t.tracer.Start(ctx, kind.name, kind.options...)
	if span.SpanContext().IsValid() {
		md, _ := metadata.FromOutgoingContext(ctx)
		md = md.Copy()
		t.propagator.Inject(ctx, carrier(md))
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	return ctx, callSpan{span}
}

func (t *Tracing) kind(call timecache.TracedCall) *callKind {
	if kind, known := t.calls.Load(call); known {
		return kind.(*callKind)
	}
	name := strings.TrimPrefix(call.Method, "/")
	service, method, _ := strings.Cut(name, "/")
	attributes := append(serverOf(call.Target),
		attribute.String("rpc.system", "grpc"),
		attribute.String("rpc.service", service),
		attribute.String("rpc.method", method))
	if call.Namespace != "" {
		attributes = append(attributes, attribute.String("timecached.namespace", call.Namespace))
	}
	kind := &callKind{name: name, options: []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...)}}
	if t.callsN.Load() < maxKinds {
		t.callsN.Add(1)
		t.calls.Store(call, kind)
	}
	return kind
}

// serverOf says where calls go: of "dns:///host:port" or "unix:/path", too.
func serverOf(target string) []attribute.KeyValue {
	if path, is := strings.CutPrefix(target, "unix:"); is {
		return []attribute.KeyValue{attribute.String("server.address", "/"+strings.TrimLeft(path, "/"))}
	}
	target = target[strings.LastIndex(target, "/")+1:]
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		host = target
	}
	if host == "" {
		return nil
	}
	attributes := []attribute.KeyValue{attribute.String("server.address", host)}
	if number, err := strconv.Atoi(port); err == nil {
		attributes = append(attributes, attribute.Int("server.port", number))
	}
	return attributes
}

type callSpan struct{ span trace.Span }

func (s callSpan) Retry(why error) {
	if s.span.IsRecording() {
		s.span.AddEvent("retry", trace.WithAttributes(errorAttributes(why)...))
	}
}

func (s callSpan) End(err error) {
	if s.span.IsRecording() {
		code := grpccodes.OK
		if err != nil {
			code = codeOf(err)
			s.span.SetAttributes(errorAttributes(err)...)
			s.span.SetStatus(codes.Error, err.Error())
		}
		s.span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(code)))
	}
	s.span.End()
}

func codeOf(err error) grpccodes.Code {
	var failure *timecache.Error
	if errors.As(err, &failure) {
		return failure.Code
	}
	return grpccodes.Unknown
}

// errorAttributes have the server's reason, or else the gRPC code, as error.type.
func errorAttributes(err error) []attribute.KeyValue {
	var failure *timecache.Error
	if !errors.As(err, &failure) {
		return []attribute.KeyValue{attribute.String("error.type", "_OTHER")}
	}
	if failure.Reason != "" {
		return []attribute.KeyValue{attribute.String("error.type", string(failure.Reason))}
	}
	return []attribute.KeyValue{attribute.String("error.type", failure.Code.String())}
}

// StartHandler begins the span of what handles an event: a worker calls it for its handler, whose
// context has the span; who reads the events of a group by Consume or FetchExpired may do so, too.
// The end takes how the event is settled, and what went wrong, if anything.
func (t *Tracing) StartHandler(ctx context.Context, group string, event *timecache.ExpiredEvent) (
	context.Context, func(timecache.Action, error)) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "timecached"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", event.Namespace),
		attribute.String("messaging.consumer.group.name", group),
		attribute.String("messaging.message.id", strconv.FormatUint(event.EventID, 10)),
		attribute.String("timecached.namespace", event.Namespace),
		attribute.Int64("timecached.attempt", int64(event.Attempt)))}
	if put := SpanContextOf(event); put.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: put}))
	}
	ctx, span := t.tracer.Start(ctx, "process "+event.Namespace, options...)
	return ctx, func(action timecache.Action, err error) {
		if span.IsRecording() {
			span.SetAttributes(attribute.String("timecached.settlement", action.Name()))
			if err != nil {
				span.SetAttributes(errorAttributes(err)...)
				span.SetStatus(codes.Error, err.Error())
			}
		}
		span.End()
	}
}

// SpanContextOf is the span that stored the entry which died, for a link to it; not valid where
// the entry has kept none.
func SpanContextOf(event *timecache.ExpiredEvent) trace.SpanContext {
	if event.Traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": event.Traceparent})
	return trace.SpanContextFromContext(ctx)
}

// Traceparent is that of the span in the context, for a timecache.EntryTraceparent; empty: there
// is none.
func Traceparent(ctx context.Context) string {
	found := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, found)
	return found["traceparent"]
}

// carrier is gRPC's metadata. Its keys are in lower case.
type carrier metadata.MD

func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
