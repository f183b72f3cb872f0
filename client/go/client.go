// Package timecache is the client of timecached, a server for state that expires and
// tells you so.
//
//	client, err := timecache.NewClient("127.0.0.1:7171", timecache.Options{})
//	...
//	_, err = client.Put(ctx, "session:7", []byte("basket=3"), timecache.TTL(30*time.Minute))
//	entry, found, err := client.Get(ctx, "session:7")
//
// [Client.Watch] tells what has expired, [Client.WatchExpiring] what is going to,
// [Client.Worker] works off the events of a consumer group. [Client.Execute] and
// [Client.Pipeline] do many operations at once.
//
// Keys, and the names of parts, are strings of any bytes; values are byte slices. Times
// are on the server's clock, with a resolution of a microsecond.
//
// # Deadlines and retries
//
// A call whose context has no deadline gets [Options.Timeout], 5 s by default. A call
// that is safe to repeat (it reads, is a Touch, or has an [IdempotencyID]) is tried again, at
// most twice, where its connection was lost or the server is stopping. The others are not: a
// call that failed may have been done. See [RetryPolicy] and [Repeatable].
//
// # Calls at the same time
//
// Put, Get, Remove, Contains, Touch, Append, Combine and Gather of goroutines that call at the
// same time share a stream, one for each namespace: an operation goes at once if at most one
// message is under way, otherwise with those that come until an answer does; no timer delays it.
// Each has its own result, error, deadline, cancellation, [RequestID], [Traceparent] and span, as
// an RPC of its own has, and ends no other. One that ends before it was sent was not applied, and
// one that was sent may have been. Operations of a goroutine that waits for each are applied in
// their order.
//
// By an RPC of its own goes an operation of more than 64 KiB, one whose context has outgoing
// metadata beside x-request-id, traceparent and tracestate, and one with [Options.Batching] or
// [Batching] off: for interceptors of unary calls, for credentials that depend on a call's
// context, for proxies. And all do where 64 other namespaces have calls under way, and where the
// server has no Pipeline.
//
// # Owner routing
//
// In a cluster whose nodes share the ownership any node takes any call, and has the owner of the
// key do it: that costs several times the CPU of a call to the owner. With [Options.OwnerRouting]
// the operations above, and an Execute, go to the owner: an Execute in parts, at the same time,
// where its keys are of several; one that is [Atomic] if all keys are in one partition. All else
// goes to the node that it goes to without.
//
// The client asks for a namespace's owners at its first use, in the background, and again every
// 5 s while it is used, and when an owner was not reached or is none any more: a GetOwners, for
// which any permission on the namespace will do. It keeps those of 1,000 namespaces, and channels
// to 64 nodes, with the client's own credentials and shared streams of their own. Until an owner is known and its channel stands,
// calls go where they go without. One that certainly did not reach the owner goes there, too, at
// once, and the owner is left out for 1 s, up to 30 s when that comes again: a wrong guess costs
// time, and is no error. Servers that know no owners are asked once a minute.
//
// # Tracing
//
// With [Options.Tracing] calls and workers' handlers have spans: package timecacheotel, of a
// module of its own, makes those of OpenTelemetry.
//
// # Errors
//
// Every error of a call is an [*Error], with the server's reason, and whether the call may
// have been done all the same; [errors.Is] takes a [Reason]. [context.Canceled] and [context.DeadlineExceeded] are told by errors.Is, too.
package timecache

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

const (
	// MaxMessageBytes is the largest message that a client takes: a value of 16 MiB, the
	// most that a namespace allows, with its key.
	MaxMessageBytes = 64 << 20
	// DefaultNamespace is there from a server's start, unless it was configured
	// otherwise.
	DefaultNamespace = "default"
	// DefaultTimeout is that of a call whose context has no deadline.
	DefaultTimeout = 5 * time.Second
)

// Options of a client. The zero value is good for a server on the same machine.
type Options struct {
	// Namespace of all calls. Empty: [DefaultNamespace]. See [Client.In].
	Namespace string
	// Timeout of a call whose context has no deadline; past it, whether the call had an
	// effect is unknown. 0: [DefaultTimeout]. Negative: none. Scans, watches and backups
	// have none.
	Timeout time.Duration
	// Batching: plain calls of goroutines that call at the same time share a stream, and their
	// Settles a request; see the package's comment. Nil: yes. new(false): each call has an RPC of
	// its own. See [Batching] for single calls.
	Batching *bool
	// OwnerRouting sends calls straight to the nodes that own their keys, where the nodes of a
	// cluster share the ownership (cluster.forward_calls): see the package's comment. Only for
	// clients that reach each node at its cluster.advertise. Of no account with
	// [NewClientFromConn].
	OwnerRouting bool
	// Retry says when a call is tried again.
	Retry RetryPolicy
	// Tracing makes spans of calls and of workers' handlers. Nil: none. For OpenTelemetry it is
	// what timecacheotel.New returns.
	Tracing Tracing
	// TraceEntries: whatever Put, Append, Combine and Gather store keeps the traceparent of its
	// call, so that the span of what handles its event links to it: 27 B more of an entry. See
	// [TraceEntry] for single calls, [EntryTraceparent] for a traceparent of one's own.
	TraceEntries bool
	// TLS secures the connection. Nil: plain text.
	TLS *TLSFiles
	// Token is a bearer token that each call shows to the server; TokenFile holds one,
	// and is read again every 10 s, and when the server refuses it. At most one of them.
	// Over plain text a token goes to this machine alone, unless PlaintextToken says that
	// something else encrypts.
	Token          string
	TokenFile      string
	PlaintextToken bool
	// DialOptions come after the client's own: interceptors, a balancer, credentials
	// such as those of a *tls.Config.
	DialOptions []grpc.DialOption
}

// RetryPolicy says how often a call is done that is safe to repeat and failed because its
// connection was lost or the server is stopping; what a server answers about the request
// itself stands. Always within the call's deadline.
//
// Safe are Get, Touch, Contains, Size and whatever describes, lists or checks: done twice,
// they leave what they leave when done once; and what has an [IdempotencyID]. Not so the others:
// another's change since would be undone, or the second attempt fail on the first one's success.
// An Execute is safe, and a pipeline goes on after a break, where all of their operations are.
type RetryPolicy struct {
	// MaxAttempts counts all of them. 0: 3. 1: none is repeated.
	MaxAttempts int
	// MinPause and MaxPause are between attempts: doubled from one to the next, each
	// shortened at random by up to half. 0: 50 ms and 1 s.
	MinPause, MaxPause time.Duration
}

// Client is a client of one server, or of the nodes of one cluster, and of one of its
// namespaces. It connects with the first call, and again by itself. Safe for concurrent use; make one, and share it.
type Client struct {
	conn     *cluster
	close    func() error
	options  Options
	cache    pb.TimeCacheServiceClient
	token    *bearer // Nil: none, or the caller's.
	streams  *sharedStreams
	lane     *atomic.Pointer[lane] // Of the namespace, if it was used.
	owners   *owners               // Nil: calls are not routed.
	owned    *atomic.Pointer[namespaceOwners]
	settling *settling
}

// NewClient makes a client for the server at address, "host:port" or "unix:/path", or
// another target of gRPC's with a scheme, such as "dns:///host:port". Of a cluster it is the
// addresses of the nodes, separated by commas, at most [MaxAddresses]: calls go to the owner,
// watches and workers resume there. It does not connect yet: that there is no server is told
// by the first call. An error is about the address or the options.
func NewClient(address string, options Options) (*Client, error) {
	return NewClusterClient(splitAddresses(address), options)
}

// NewClusterClient is [NewClient] for the addresses of several nodes of a cluster, 1 to
// [MaxAddresses].
func NewClusterClient(addresses []string, options Options) (*Client, error) {
	if err := checkAddresses(addresses); err != nil {
		return nil, err
	}
	addresses = slices.Clone(addresses)
	connect := grpc.ConnectParams{
		Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6,
			Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: 5 * time.Second}
	if len(addresses) > 1 {
		connect.MinConnectTimeout = time.Second // Another may do.
	}
	dial := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes)),
		grpc.WithDisableServiceConfig(),
		// A dead connection is noticed within 40 s, a server that is back within one.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 30 * time.Second, Timeout: 10 * time.Second}),
		// Fixed: to find better ones gRPC would send a ping with nearly every message.
		grpc.WithStaticStreamWindowSize(1 << 20), grpc.WithStaticConnWindowSize(16 << 20),
	}
	credentials, token, err := dialCredentials(addresses, &options)
	if err != nil {
		return nil, err
	}
	dial = append(append(dial, credentials...), options.DialOptions...)
	dialer := func(connect grpc.ConnectParams) func(string) (*grpc.ClientConn, error) {
		dial := append([]grpc.DialOption{grpc.WithConnectParams(connect)}, dial...)
		return func(address string) (*grpc.ClientConn, error) {
			if err := checkTokenTo(address, &options); err != nil {
				return nil, err
			}
			return grpc.NewClient(address, dial...)
		}
	}
	conn, err := dialer(connect)(addresses[0])
	if err != nil {
		return nil, &Error{Code: codes.InvalidArgument, Message: err.Error(), cause: err}
	}
	client := NewClientFromConn(conn, options)
	client.conn = newCluster(addresses, conn, dialer(connect))
	client.cache = pb.NewTimeCacheServiceClient(client.conn)
	client.token = token
	if options.OwnerRouting {
		client.owners, client.owned = newOwners(client, dialer(ownerConnectParams)), new(atomic.Pointer[namespaceOwners])
	}
	client.close = sync.OnceValue(func() error {
		err := client.conn.Close()
		client.streams.close()
		client.owners.close()
		return err
	})
	return client, nil
}

// checkAddress refuses what gRPC would take and never connect to: a URL, and a host without
// a port, for which it takes 443.
func checkAddress(address string) error {
	isURL := strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
	if !isURL && (strings.Contains(address, "://") || strings.HasPrefix(address, "unix")) {
		return nil
	}
	if _, port, err := net.SplitHostPort(address); isURL || err != nil || port == "" {
		return invalid(`address %q: must be "host:port" or "unix:/path"`, address)
	}
	return nil
}

// NewClientFromConn makes a client over a connection of the caller's making, who closes
// it. Of the options those about the connection are of no account. The connection needs
// grpc.MaxCallRecvMsgSize(MaxMessageBytes) where values are larger than 4 MiB. One that stands in
// for a server in a test has to know Pipeline, or say Unimplemented, unless [Options.Batching] is
// off.
func NewClientFromConn(conn grpc.ClientConnInterface, options Options) *Client {
	options.Namespace = cmp.Or(options.Namespace, DefaultNamespace)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.Retry.MaxAttempts = cmp.Or(options.Retry.MaxAttempts, 3)
	options.Retry.MinPause = cmp.Or(options.Retry.MinPause, 50*time.Millisecond)
	options.Retry.MaxPause = cmp.Or(options.Retry.MaxPause, time.Second)
	cluster := newCluster([]string{""}, conn, nil)
	streams := &sharedStreams{lanes: map[string]*lane{}}
	return &Client{conn: cluster, options: options, cache: pb.NewTimeCacheServiceClient(cluster),
		streams: streams, lane: new(atomic.Pointer[lane]), settling: &settling{queues: map[settledGroup][]*settleCall{}},
		close: func() error {
			streams.close()
			return nil
		}}
}

// In returns the same client for another namespace. They share the connection.
func (c *Client) In(namespace string) *Client {
	other := *c
	other.options.Namespace = namespace
	other.lane = new(atomic.Pointer[lane])
	if c.owners != nil {
		other.owned = new(atomic.Pointer[namespaceOwners])
	}
	return &other
}

// Namespace returns the name of the client's namespace.
func (c *Client) Namespace() string { return c.options.Namespace }

// Conn returns the client's connection, for the generated stubs in gen. Of a cluster, it goes
// to the owner as the client's own calls do.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends the connection and with it all that is under way, watches and workers
// included: that ends with Canceled, as does what comes later. May be called again.
func (c *Client) Close() error { return c.close() }

// failure takes an error of gRPC's, which does not say what host it found no address of. A
// token that the server refused is read again for the next call.
func (c *Client) failure(err error, trailer metadata.MD) *Error {
	failure := newError(err, trailer)
	if failure.connectionLost() && c.conn.isClosed() {
		return &Error{Code: codes.Canceled, Message: "the client is closed", MaybeApplied: failure.MaybeApplied}
	}
	if failure.Code == codes.Unauthenticated {
		c.token.reread()
	}
	if c.conn.clientConn() != nil && failure.Code == codes.Unavailable && strings.HasPrefix(failure.Message, "name resolver error") {
		failure.Message = c.conn.Target() + ": " + failure.Message
	}
	return failure
}

// mayComeBack says whether the same again may succeed.
func (c *Client) mayComeBack(failure *Error) bool {
	return failure.connectionLost() && !c.conn.isClosed()
}

// withDeadline gives a call the client's timeout if it has no deadline of its own.
func (c *Client) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has || c.options.Timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// outgoing adds to a call's metadata what its options say.
func (s *settings) outgoing(ctx context.Context) context.Context {
	if len(s.metadata) == 0 {
		return ctx
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	for i := 0; i < len(s.metadata); i += 2 {
		md.Set(s.metadata[i], s.metadata[i+1]) // The server takes one of each.
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// pauses double from the shortest to the longest, each shortened at random by up to half:
// many clients of a server that restarts do not come back all at once.
type pauses struct{ min, max, last time.Duration }

func (p *pauses) next() time.Duration {
	p.last = min(max(2*p.last, p.min), p.max)
	return time.Duration(float64(p.last) * (0.5 + rand.Float64()/2))
}

func (p *pauses) reset() { p.last = 0 }

// sleep returns false if the context ends before the pause does, or would.
func sleep(ctx context.Context, pause time.Duration) bool {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// toUint32 is a number for a field that has no room for others: one that does not fit becomes
// one that the server refuses.
func toUint32(number int) uint32 {
	return uint32(min(max(int64(number), 0), math.MaxUint32))
}
