package timecache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

const (
	// Most namespaces whose owners are known: the one not used for longest is forgotten for
	// another.
	maxOwnedNamespaces = 1000
	// Most owners that have a channel. What others own goes to the default node.
	maxOwnerNodes = 64
	// Most questions that are under way, each for a namespace of its own. Others are put later.
	maxOwnerQuestions = 64
	questionTimeout   = 5 * time.Second
	// How old an answer may be when it is used; and where it has proved wrong.
	ownersAge = 5 * time.Second
	doubtAge  = 100 * time.Millisecond
	// How long there is no other question after a server that does not know owners, or does not
	// tell them; and after any other error.
	refusedPause = time.Minute
	failedPause  = time.Second
	// How exactly it is known when a namespace was used.
	useTick = time.Second
)

// owners is what a client knows of where its namespaces' partitions are owned, and the channels
// there. It is asked for in the background, of the default node: no call waits for it, or for a
// channel to connect; it goes to the default node meanwhile. Safe for concurrent use.
type owners struct {
	client    *Client // Of the default node.
	dial      func(address string) (*grpc.ClientConn, error)
	now       func() int64 // Nanoseconds that never go back.
	questions atomic.Int64 // That are under way.

	mu         sync.RWMutex
	namespaces map[string]*namespaceOwners
	nodes      map[string]*ownerNode // By address.
	closed     bool
}

// namespaceOwners is what is known of one namespace.
type namespaceOwners struct {
	owners    *owners
	name      string
	routes    atomic.Pointer[[]*ownerRoute] // By partition. A nil one: the default node.
	asking    atomic.Bool
	due       atomic.Int64 // When it is asked for again, if it is used.
	earliest  atomic.Int64 // The same if it has proved wrong.
	used      atomic.Int64 // When, to useTick.
	forgotten atomic.Bool
}

// ownerRoute is the way of a namespace's calls to a node.
type ownerRoute struct {
	node      *ownerNode
	namespace *namespaceOwners
	client    *Client       // That calls the node, and no other.
	downs     atomic.Uint32 // Those of the node that the namespace's owners were asked for after.
}

func newOwners(client *Client, dial func(address string) (*grpc.ClientConn, error)) *owners {
	begin := time.Now()
	return &owners{client: client, dial: dial, now: func() int64 { return int64(time.Since(begin)) },
		namespaces: map[string]*namespaceOwners{}, nodes: map[string]*ownerNode{}}
}

// enterOwner is the way to the owner of an operation's key, which is left by leave. Nil: the
// call goes to the default node.
func (c *Client) enterOwner(operation *pb.Operation) *ownerRoute {
	if c.owners == nil {
		return nil
	}
	now := c.owners.now()
	routes := c.knownOwners(now)
	if len(routes) == 0 {
		return nil
	}
	return routes[partitionOf(keyOf(operation), len(routes))].enter(now)
}

// knownOwners are the routes of the client's namespace, by partition; empty: they are not known.
func (c *Client) knownOwners(now int64) []*ownerRoute {
	n := c.owned.Load()
	if n == nil || n.forgotten.Load() {
		n = c.owners.namespace(c.options.Namespace, now)
		c.owned.Store(n)
	}
	if now-n.used.Load() >= int64(useTick) {
		n.used.Store(now)
	}
	if now >= n.due.Load() {
		n.ask()
	}
	if routes := n.routes.Load(); routes != nil {
		return *routes
	}
	return nil
}

// namespace finds or begins what is known of one.
func (o *owners) namespace(name string, now int64) *namespaceOwners {
	o.mu.RLock()
	n := o.namespaces[name]
	o.mu.RUnlock()
	if n != nil {
		return n
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := o.namespaces[name]; n != nil {
		return n
	}
	if len(o.namespaces) >= maxOwnedNamespaces {
		o.forgetOne()
	}
	n = &namespaceOwners{owners: o, name: name}
	n.used.Store(now)
	o.namespaces[name] = n
	return n
}

// forgetOne makes room for another namespace. With mu.
func (o *owners) forgetOne() {
	var oldest *namespaceOwners
	for _, n := range o.namespaces {
		if oldest == nil || n.used.Load() < oldest.used.Load() {
			oldest = n
		}
	}
	o.keep(oldest, nil)
	oldest.forgotten.Store(true)
	delete(o.namespaces, oldest.name)
}

// ask puts the question for the owners, unless it is under way.
func (n *namespaceOwners) ask() {
	o := n.owners
	if !n.asking.CompareAndSwap(false, true) {
		return
	}
	if o.questions.Add(1) > maxOwnerQuestions {
		o.questions.Add(-1)
		n.asking.Store(false)
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
		defer cancel()
		answer := &pb.GetOwnersResponse{}
		failure := o.client.unary(ctx, pb.NamespaceService_GetOwners_FullMethodName, &pb.GetOwnersRequest{Name: n.name}, answer)
		o.learn(n, answer.Addresses, failure)
		n.asking.Store(false)
		o.questions.Add(-1)
	}()
}

// learn takes an answer, or why there is none: then what is known stays, unless the server says
// that there are no owners.
func (o *owners) learn(n *namespaceOwners, addresses []string, failure *Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, age, doubt, isAnswer := o.now(), ownersAge, doubtAge, true
	if failure != nil {
		age, doubt = failedPause, failedPause
		switch failure.Code {
		case codes.FailedPrecondition, codes.Unimplemented, codes.PermissionDenied:
			age, doubt = refusedPause, refusedPause
		case codes.NotFound:
		default:
			isAnswer = false
		}
	}
	if isAnswer && !n.forgotten.Load() && !o.closed {
		o.keep(n, addresses)
	}
	n.earliest.Store(now + int64(doubt))
	n.due.Store(now + int64(age))
}

// keep makes routes to the owners, by partition, of those that there are and new ones. With mu.
func (o *owners) keep(n *namespaceOwners, addresses []string) {
	home := o.client.conn.current.Load().address
	routes := map[string]*ownerRoute{}
	for _, address := range addresses {
		if address != "" && address != home {
			routes[address] = nil
		}
	}
	if known := n.routes.Load(); known != nil {
		o.release(*known, routes)
	}
	byPartition := make([]*ownerRoute, len(addresses))
	for i, address := range addresses {
		route, isOwner := routes[address]
		if isOwner && route == nil {
			route = o.route(n, address)
			routes[address] = route
		}
		byPartition[i] = route
	}
	n.routes.Store(&byPartition)
}

// release takes into `kept`, by address, the routes that stay, and leaves the others' nodes. With
// mu.
func (o *owners) release(routes []*ownerRoute, kept map[string]*ownerRoute) {
	left := map[*ownerRoute]bool{}
	for _, route := range routes {
		if route == nil || left[route] {
			continue
		}
		if _, stays := kept[route.node.address]; stays {
			kept[route.node.address] = route
			continue
		}
		left[route] = true
		if route.node.named--; route.node.named == 0 {
			delete(o.nodes, route.node.address)
			route.node.retire()
		}
	}
}

// route makes a new one; nil: there is no room for another node. With mu.
func (o *owners) route(n *namespaceOwners, address string) *ownerRoute {
	node := o.nodes[address]
	if node == nil {
		if len(o.nodes) >= maxOwnerNodes {
			return nil
		}
		node = newOwnerNode(o, address)
		o.nodes[address] = node
	}
	node.named++
	client := *o.client
	client.options.Namespace, client.owners = n.name, nil
	client.conn, client.streams, client.lane = node.cluster, node.streams, new(atomic.Pointer[lane])
	route := &ownerRoute{node: node, namespace: n, client: &client}
	route.downs.Store(node.downs.Load())
	return route
}

// close ends all channels, with what is under way.
func (o *owners) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, node := range o.nodes {
		node.close()
	}
}

// doubt: an owner was not reached, or was none.
func (n *namespaceOwners) doubt(now int64) {
	n.due.Store(max(now, n.earliest.Load()))
	if now >= n.due.Load() {
		n.ask()
	}
}

// enter returns the route if its node is reached: then it is left by leave. Nil: nil.
func (r *ownerRoute) enter(now int64) *ownerRoute {
	if !r.isReached(now) || !r.node.enter() {
		return nil
	}
	return r
}

// isReached says whether a call may go this way now.
func (r *ownerRoute) isReached(now int64) bool {
	if r == nil {
		return false
	}
	if r.node.isReached(now) {
		return true
	}
	if downs := r.node.downs.Load(); r.downs.Swap(downs) != downs {
		r.namespace.doubt(now)
	}
	return false
}

func (r *ownerRoute) leave() {
	if r != nil {
		r.node.leave()
	}
}

// or is the client that a call is made by: the route's, or for a nil one that of the default node.
func (r *ownerRoute) or(c *Client) *Client {
	if r == nil {
		return c
	}
	return r.client
}

// failed learns from the failure of a call that went this way. Says whether the call goes on at
// the default node as if it had gone there at once: the owner has refused it, or did not get it.
func (r *ownerRoute) failed(failure *Error) bool {
	if r == nil {
		return false
	}
	isUnreached := failure.Code == codes.Unavailable && (failure.Reason == "" || failure.Reason == Draining)
	if isUnreached {
		r.node.leaveOut()
	}
	if isUnreached || failure.Reason == NotOwner || failure.Reason == OwnershipLost ||
		failure.Code == codes.DeadlineExceeded && failure.Reason == "" {
		r.namespace.doubt(r.namespace.owners.now())
	}
	return failure.Code == codes.Unavailable && !failure.MaybeApplied
}
