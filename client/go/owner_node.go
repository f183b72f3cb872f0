package timecache

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
)

const (
	// How long a node is left out that was not reached: doubled where that fails again.
	minLeftOut = time.Second
	maxLeftOut = 30 * time.Second
	// Of a node that no namespace names any more, and of which calls may be under way.
	retiredUsers = math.MinInt64 / 2
)

// ownerConnectParams of the channels to owners. No call waits for them to connect.
var ownerConnectParams = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: minLeftOut, Multiplier: 2, Jitter: 0.2, MaxDelay: maxLeftOut},
	MinConnectTimeout: time.Second}

const (
	nodeIdle = int32(iota)
	nodeConnecting
	nodeReady
)

// ownerNode is a node that owns partitions, other than the default one. Its channel is made at the
// first use, and closed once no namespace names it and no call uses it. Safe for concurrent use.
type ownerNode struct {
	address string
	owners  *owners
	cluster *cluster // Of this node alone.
	streams *sharedStreams
	ctx     context.Context // Ends with the channel.
	cancel  context.CancelFunc

	state atomic.Int32
	until atomic.Int64  // It is left out until then, by the owners' clock.
	downs atomic.Uint32 // How often it was not reached.
	users atomic.Int64  // Calls that are under way.
	named int           // By so many namespaces. Guarded by the owners' mu.

	mu     sync.Mutex
	pause  time.Duration // The last one that it was left out for.
	conn   *grpc.ClientConn
	closed bool
}

func newOwnerNode(o *owners, address string) *ownerNode {
	n := &ownerNode{address: address, owners: o, streams: &sharedStreams{lanes: map[string]*lane{}},
		cluster: &cluster{addresses: []string{address}, isPinned: true}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// isReached says whether a call may go there, without waiting for a connection: if there is none,
// it is begun.
func (n *ownerNode) isReached(now int64) bool {
	if now < n.until.Load() {
		return false
	}
	if n.state.Load() == nodeIdle && n.state.CompareAndSwap(nodeIdle, nodeConnecting) {
		go n.connect()
	}
	return n.state.Load() == nodeReady
}

// connect follows the channel's state until it is idle again, or closed. While the node is not
// reached gRPC goes on trying, as often as ownerConnectParams say.
func (n *ownerNode) connect() {
	conn := n.channel()
	if conn == nil {
		n.leaveOut()
		n.state.Store(nodeIdle)
		return
	}
	for wasReady := false; ; {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			n.state.Store(nodeReady)
			wasReady = true
		case connectivity.Idle:
			if wasReady {
				n.downs.Add(1)
				n.state.Store(nodeIdle)
				return
			}
			conn.Connect()
		case connectivity.TransientFailure:
			n.state.Store(nodeConnecting)
			n.downs.Add(1)
		default:
			n.state.Store(nodeConnecting)
		}
		if !conn.WaitForStateChange(n.ctx, state) {
			return
		}
	}
}

// channel returns the one to the node; nil: the client does not connect to such an address, or is
// closed.
func (n *ownerNode) channel() *grpc.ClientConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == nil && !n.closed && checkAddress(n.address) == nil {
		if conn, err := n.owners.dial(n.address); err == nil {
			n.conn = conn
			n.cluster.current.Store(&node{n.address, conn})
		}
	}
	return n.conn
}

// leaveOut: calls go elsewhere for a while. It is longer if the node was left out not long ago.
func (n *ownerNode) leaveOut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, until := n.owners.now(), n.until.Load()
	if now < until {
		return // Another call has seen it, too.
	}
	if now < until+int64(n.pause) {
		n.pause = min(2*n.pause, maxLeftOut)
	} else {
		n.pause = minLeftOut
	}
	n.until.Store(now + int64(n.pause))
}

// enter says whether a call may use the channel until it leaves: it is not closed before.
func (n *ownerNode) enter() bool {
	if n.users.Add(1) > 0 {
		return true
	}
	n.leave()
	return false
}

func (n *ownerNode) leave() {
	if n.users.Add(-1) == retiredUsers {
		go n.close()
	}
}

// retire closes the channel once no call uses it any more. Once.
func (n *ownerNode) retire() {
	if n.users.Add(retiredUsers) == retiredUsers {
		go n.close()
	}
}

// close ends the channel, and all that is under way there. May be called again.
func (n *ownerNode) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.cancel()
	n.streams.close()
	if n.conn != nil {
		n.conn.Close()
	}
}
