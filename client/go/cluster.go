package timecache

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
)

const (
	// MaxAddresses is how many addresses a client may have.
	MaxAddresses = 16
	// Most owners that servers named and the caller did not: later ones are not called.
	maxOtherNodes = 16
)

// splitAddresses takes "a:7171, b:7171" apart.
func splitAddresses(address string) []string {
	addresses := strings.Split(address, ",")
	for i := range addresses {
		if len(addresses) > 1 {
			addresses[i] = strings.TrimSpace(addresses[i])
		}
	}
	return addresses
}

func checkAddresses(addresses []string) error {
	if len(addresses) == 0 {
		return invalid("addresses: there is none")
	}
	if len(addresses) > MaxAddresses {
		return invalid("address: %d of them; at most %d are allowed", len(addresses), MaxAddresses)
	}
	for _, address := range addresses {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

// cluster is the connection of a client: one to each server that it may call, made when it
// is first needed. Calls go to the current one. A call that a node refuses because it is not
// the owner is repeated at the owner, whatever it does, and one that finds no connection at
// the next address: nothing was applied. After a connection that broke, and after a call that
// a node did not answer in time, the next call goes to the next address. Safe for concurrent
// use.
type cluster struct {
	addresses []string
	dial      func(address string) (*grpc.ClientConn, error) // Nil: the connection is the caller's.
	isPinned  bool                                           // Calls go nowhere else: whoever makes them sees to that.
	current   atomic.Pointer[node]

	mu     sync.Mutex
	nodes  map[string]*node
	index  int // Of the address that was current last.
	closed bool
}

type node struct {
	address string
	conn    grpc.ClientConnInterface
}

func newCluster(addresses []string, conn grpc.ClientConnInterface, dial func(string) (*grpc.ClientConn, error)) *cluster {
	first := &node{addresses[0], conn}
	c := &cluster{addresses: addresses, dial: dial, nodes: map[string]*node{addresses[0]: first}}
	c.current.Store(first)
	return c
}

// Close ends the connections.
func (c *cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var first error
	for _, node := range c.nodes {
		if conn, ok := node.conn.(*grpc.ClientConn); ok && c.dial != nil {
			if err := conn.Close(); first == nil {
				first = err
			}
		}
	}
	return first
}

// clientConn is the current connection; nil: of another kind.
func (c *cluster) clientConn() *grpc.ClientConn {
	conn, _ := c.current.Load().conn.(*grpc.ClientConn)
	return conn
}

// Target is that of the current connection.
func (c *cluster) Target() string {
	if conn := c.clientConn(); conn != nil {
		return conn.Target()
	}
	return ""
}

func (c *cluster) isClosed() bool {
	conn := c.clientConn()
	return conn != nil && conn.GetState() == connectivity.Shutdown
}

// hasOthers says whether the caller gave several addresses.
func (c *cluster) hasOthers() bool { return len(c.addresses) > 1 }

// moveOn makes the owner that a failure names current, or the next address, if the failure
// says that another may do better and from still is current.
func (c *cluster) moveOn(ctx context.Context, from *node, failure *Error) {
	if cause, ok := context.Cause(ctx).(*Error); ok { // Of a watch or a pipeline.
		failure = cause
	}
	// The node may hang; if it does not, the next one names it.
	hangs := failure.Code == codes.DeadlineExceeded && c.hasOthers()
	if c.isPinned || !hangs && !failure.connectionLost() || ctx.Err() != nil && failure.Code == codes.Canceled {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.current.Load() != from {
		return
	}
	var next *node
	if failure.Reason == NotOwner {
		next = c.owner(failure.Metadata["owner_address"])
	}
	if next == from {
		next = nil
	}
	for range c.addresses {
		if next != nil {
			break
		}
		c.index = (c.index + 1) % len(c.addresses)
		next = c.at(c.addresses[c.index])
	}
	if next != nil {
		c.current.Store(next)
	}
}

// owner is the node of that name; nil: it is not to be called.
func (c *cluster) owner(address string) *node {
	if i := slices.Index(c.addresses, address); i >= 0 {
		c.index = i
	} else if c.nodes[address] == nil && (len(c.nodes) >= len(c.addresses)+maxOtherNodes || checkAddress(address) != nil) {
		return nil
	}
	return c.at(address)
}

func (c *cluster) at(address string) *node {
	if c.nodes[address] == nil && c.dial != nil {
		if conn, err := c.dial(address); err == nil {
			c.nodes[address] = &node{address, conn}
		}
	}
	return c.nodes[address]
}

// failover says when a call or the start of a stream is tried elsewhere.
type failover struct {
	cluster   *cluster
	pauses    pauses
	unreached int // Addresses, one after the other.
}

func (c *cluster) failover() failover {
	return failover{cluster: c, pauses: pauses{min: 20 * time.Millisecond, max: 100 * time.Millisecond}}
}

// again waits, and says whether there is another attempt. isLost: the failure is one that
// another address may not have, and nothing was done.
func (f *failover) again(ctx context.Context, failure *Error, isLost bool) bool {
	if failure.Reason == NotOwner && !f.cluster.isPinned {
		f.unreached = 0
		return sleep(ctx, f.pauses.next())
	}
	if !isLost {
		return false
	}
	f.unreached++
	return f.unreached < len(f.cluster.addresses) && ctx.Err() == nil
}

// Invoke does a unary call.
func (c *cluster) Invoke(ctx context.Context, method string, request, response any, options ...grpc.CallOption) error {
	failover := failover{}
	for {
		node := c.current.Load()
		err := node.conn.Invoke(ctx, method, request, response, options...)
		if err == nil {
			return nil
		}
		failure := newError(err, nil)
		c.moveOn(ctx, node, failure)
		if failover.cluster == nil {
			failover = c.failover()
		}
		server := peerOf(options)
		isLost := failure.Code == codes.Unavailable && failure.Reason == "" && server != nil && server.Addr == nil
		if !failover.again(ctx, failure, isLost) {
			return err
		}
		if retry, ok := ctx.Value(onRetry{}).(func(error)); ok {
			retry(failure)
		}
		if server != nil {
			*server = peer.Peer{} // Of the next attempt, if it has one.
		}
	}
}

// peerOf is where a call's options want its peer.
func peerOf(options []grpc.CallOption) *peer.Peer {
	for _, option := range options {
		if option, ok := option.(grpc.PeerCallOption); ok {
			return option.PeerAddr
		}
	}
	return nil
}

// NewStream begins a stream. One of a single request begins again elsewhere, as a unary call
// does, until its first message has come.
func (c *cluster) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	s := &clusterStream{ctx: ctx, desc: desc, method: method, options: options, failover: c.failover()}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

type clusterStream struct {
	grpc.ClientStream
	node     *node
	ctx      context.Context
	desc     *grpc.StreamDesc
	method   string
	options  []grpc.CallOption
	failover failover
	request  any // Until the first message has come.
	begun    bool
}

// onAttempt is the key of what a stream's context has called, a func(), before each attempt.
type onAttempt struct{}

func (s *clusterStream) open() error {
	for {
		if begin, ok := s.ctx.Value(onAttempt{}).(func()); ok {
			begin()
		}
		s.node = s.failover.cluster.current.Load()
		stream, err := s.node.conn.NewStream(s.ctx, s.desc, s.method, s.options...)
		if err == nil {
			s.ClientStream = stream
			return nil
		}
		failure := newError(err, nil)
		s.failover.cluster.moveOn(s.ctx, s.node, failure)
		if !s.failover.again(s.ctx, failure, failure.Code == codes.Unavailable) {
			return err
		}
	}
}

// SendMsg keeps a request that may have to be sent again.
func (s *clusterStream) SendMsg(message any) error {
	if !s.desc.ClientStreams {
		s.request = message
	}
	return s.ClientStream.SendMsg(message)
}

// RecvMsg receives the next message.
func (s *clusterStream) RecvMsg(message any) error {
	for {
		err := s.ClientStream.RecvMsg(message)
		if err == nil || err == io.EOF {
			s.begun, s.request = true, nil
			return err
		}
		failure := newError(err, nil)
		s.failover.cluster.moveOn(s.ctx, s.node, failure)
		if s.begun || s.desc.ClientStreams || !s.failover.again(s.ctx, failure, failure.connectionLost()) {
			return err
		}
		if err := s.open(); err != nil {
			return err
		}
		if err := s.ClientStream.SendMsg(s.request); err != nil {
			return err
		}
		if err := s.ClientStream.CloseSend(); err != nil {
			return err
		}
	}
}
