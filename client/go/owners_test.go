package timecache_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// sharing is a cluster of nodes that share the ownership. Any takes any call.
type sharing struct {
	t     *testing.T
	nodes []*sharingNode

	mu        sync.Mutex
	owners    []string // By partition.
	refusal   error
	questions int
	hold      chan struct{} // Nil, or closed once questions are answered.
	clock     atomic.Int64
}

// sharingNode notes the keys of the calls that it takes.
type sharingNode struct {
	pb.UnimplementedTimeCacheServiceServer
	pb.UnimplementedNamespaceServiceServer
	cluster *sharing
	address string
	server  *grpc.Server
	open    atomic.Int64 // Connections.

	mu       sync.Mutex
	fail     error
	keys     []string
	requests int
	entered  chan struct{} // Of a call that waits, until hold is closed.
	hold     chan struct{}
}

func startSharing(t *testing.T, nodes int) *sharing {
	t.Helper()
	s := &sharing{t: t}
	for range nodes {
		node := &sharingNode{cluster: s}
		s.nodes = append(s.nodes, node)
		node.start("127.0.0.1:0")
	}
	for partition := range 16 {
		s.owners = append(s.owners, s.nodes[partition%nodes].address)
	}
	return s
}

func (n *sharingNode) start(address string) {
	n.cluster.t.Helper()
	n.server = grpc.NewServer(grpc.StatsHandler(n))
	pb.RegisterTimeCacheServiceServer(n.server, n)
	pb.RegisterNamespaceServiceServer(n.server, n)
	listener := must(net.Listen("tcp", address))(n.cluster.t)
	n.address = listener.Addr().String()
	go n.server.Serve(listener)
	n.cluster.t.Cleanup(n.server.Stop)
}

func (n *sharingNode) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		n.open.Add(1)
	case *stats.ConnEnd:
		n.open.Add(-1)
	}
}
func (n *sharingNode) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (n *sharingNode) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (n *sharingNode) HandleRPC(context.Context, stats.RPCStats)                         {}

// client is one of the first node, whose owners are asked for by a clock that stands.
func (s *sharing) client(options timecache.Options) *timecache.Client {
	s.t.Helper()
	options.OwnerRouting = true
	options.Timeout = cmp.Or(options.Timeout, patience)
	client := must(timecache.NewClient(s.nodes[0].address, options))(s.t)
	s.t.Cleanup(func() { client.Close() })
	timecache.SetOwnersClock(client, s.clock.Load)
	return client
}

// routed is a client that knows all owners, and is connected to them.
func (s *sharing) routed(options timecache.Options) *timecache.Client {
	s.t.Helper()
	client := s.client(options)
	for partition, owner := range s.known() {
		s.awaitRoute(client, keyIn(partition), owner)
	}
	return client
}

func (s *sharing) awaitRoute(client *timecache.Client, key, owner string) {
	s.t.Helper()
	if owner == s.nodes[0].address {
		owner = ""
	}
	eventually(s.t, func() bool { return timecache.OwnerOf(client, key) == owner })
}

func (s *sharing) known() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners
}

func (s *sharing) answer(owners []string, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners, s.refusal = owners, refusal
}

func (s *sharing) holdQuestions(hold chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

func (s *sharing) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions
}

func (s *sharing) pass(by time.Duration) { s.clock.Add(int64(by)) }

// everywhere is an owner for each of 16 partitions.
func everywhere(address string) []string {
	return strings.Split(strings.Repeat(address+" ", 15)+address, " ")
}

// keyIn is a key of a partition, of 16.
func keyIn(partition int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key-", i); timecache.PartitionOf(key, 16) == partition {
			return key
		}
	}
}

func (n *sharingNode) GetOwners(context.Context, *pb.GetOwnersRequest) (*pb.GetOwnersResponse, error) {
	n.cluster.mu.Lock()
	n.cluster.questions++
	hold := n.cluster.hold
	n.cluster.mu.Unlock()
	if hold != nil {
		<-hold
	}
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	return &pb.GetOwnersResponse{Addresses: n.cluster.owners}, n.cluster.refusal
}

func (n *sharingNode) enter(request *pb.ExecuteRequest) error {
	n.mu.Lock()
	hold := n.hold
	n.requests++
	for _, operation := range request.Operations {
		n.keys = append(n.keys, string(timecache.KeyOf(operation)))
	}
	fail := n.fail
	n.mu.Unlock()
	if hold != nil {
		n.entered <- struct{}{}
		<-hold
	}
	return fail
}

func (n *sharingNode) failWith(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// noted returns the keys, and how many requests they came in, since it was last called.
func (n *sharingNode) noted() (keys []string, requests int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys, requests = n.keys, n.requests
	n.keys, n.requests = nil, 0
	return keys, requests
}

func (n *sharingNode) Put(_ context.Context, request *pb.PutRequest) (*pb.PutResponse, error) {
	operation := &pb.Operation{Request: &pb.Operation_Put{Put: request}}
	return &pb.PutResponse{Version: 1}, n.enter(&pb.ExecuteRequest{Operations: []*pb.Operation{operation}})
}

func (n *sharingNode) Contains(_ context.Context, request *pb.ContainsRequest) (*pb.ContainsResponse, error) {
	operation := &pb.Operation{Request: &pb.Operation_Contains{Contains: request}}
	return &pb.ContainsResponse{Contains: true}, n.enter(&pb.ExecuteRequest{Operations: []*pb.Operation{operation}})
}

func (n *sharingNode) Execute(_ context.Context, request *pb.ExecuteRequest) (*pb.ExecuteResponse, error) {
	if err := n.enter(request); err != nil {
		return nil, err
	}
	return answersTo(request), nil
}

func (n *sharingNode) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		if err := n.enter(request); err != nil {
			return err
		}
		if err := stream.Send(answersTo(request)); err != nil {
			return err
		}
	}
}

func (n *sharingNode) Size(context.Context, *pb.SizeRequest) (*pb.SizeResponse, error) {
	return &pb.SizeResponse{}, n.enter(&pb.ExecuteRequest{})
}

// both runs a test with calls that share streams, and with calls of their own.
func both(t *testing.T, test func(t *testing.T, options timecache.Options)) {
	t.Run("shared", func(t *testing.T) { test(t, timecache.Options{}) })
	t.Run("unary", func(t *testing.T) { test(t, timecache.Options{Batching: new(false)}) })
}

func TestAKeysPartitionIsThatOfItsHashTag(t *testing.T) {
	// 0xE3069283 is the check value of CRC-32C.
	equal(t, "key", timecache.PartitionOf("123456789", 64), 0xE3069283%64)
	for _, key := range []string{"{123456789}", "a{123456789}b", "{123456789}{x}", "a{123456789}}", "{123456789}{"} {
		equal(t, key, timecache.PartitionOf(key, 64), 0xE3069283%64)
	}
	for _, key := range []string{"{}123456789", "{123456789", "}123456789{", "{}{123456789}"} {
		if timecache.PartitionOf(key, 1<<30) == 0xE3069283%(1<<30) {
			t.Error(key, "has that tag")
		}
	}
	equal(t, "one partition", timecache.PartitionOf("any", 1), 0)
}

func TestCallsGoToTheOwnersOfTheirKeys(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 3)
		client := cluster.routed(options)
		for partition, owner := range cluster.known() {
			for _, node := range cluster.nodes {
				node.noted()
			}
			key := "tagged{" + keyIn(partition) + "}"
			put(t, client, key)
			equal(t, "found", must(client.Contains(t.Context(), key))(t), true)
			for _, node := range cluster.nodes {
				keys, _ := node.noted()
				equal(t, node.address, len(keys) == 2, node.address == owner)
			}
		}
		must(client.Size(t.Context()))(t)
		_, requests := cluster.nodes[0].noted()
		equal(t, "other calls at the default node", requests, 1)
	})
}

func TestTheFirstCallsDoNotWait(t *testing.T) {
	cluster := startSharing(t, 2)
	hold := make(chan struct{})
	cluster.holdQuestions(hold)
	client := cluster.client(timecache.Options{})
	put(t, client, keyIn(1))
	keys, _ := cluster.nodes[0].noted()
	equal(t, "at the default node", keys, []string{keyIn(1)})
	close(hold)
	cluster.awaitRoute(client, keyIn(1), cluster.nodes[1].address)
}

func TestWithoutOwnerRoutingNobodyAsks(t *testing.T) {
	cluster := startSharing(t, 2)
	client := clientOf(t, cluster.nodes[0].address)
	for partition := range 16 {
		put(t, client, keyIn(partition))
	}
	must(client.Execute(t.Context(), []timecache.Operation{timecache.GetOperation("a"), timecache.GetOperation("b")}))(t)
	equal(t, "questions", cluster.asked(), 0)
	keys, _ := cluster.nodes[0].noted()
	equal(t, "calls", len(keys), 18)
}

func TestOneQuestionIsUnderWayForANamespace(t *testing.T) {
	cluster := startSharing(t, 2)
	client := cluster.routed(timecache.Options{})
	hold := make(chan struct{})
	cluster.holdQuestions(hold)
	cluster.pass(5 * time.Second)
	eventually(t, func() bool { put(t, client, "key"); return cluster.asked() == 2 })
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() { put(t, client, "key") })
	}
	callers.Wait()
	equal(t, "questions", cluster.asked(), 2)
	close(hold)
}

func TestOwnersAreAskedForAgainWhereTheyAreUsed(t *testing.T) {
	cluster := startSharing(t, 3)
	client := cluster.routed(timecache.Options{})
	cluster.answer(everywhere(cluster.nodes[2].address), nil)
	cluster.pass(5*time.Second - 1)
	put(t, client, keyIn(1))
	equal(t, "owner", timecache.OwnerOf(client, keyIn(1)), cluster.nodes[1].address)
	equal(t, "questions", cluster.asked(), 1)
	cluster.pass(1)
	for partition := range 16 {
		cluster.awaitRoute(client, keyIn(partition), cluster.nodes[2].address)
	}
	equal(t, "questions", cluster.asked(), 2)
	_, nodes := timecache.KnownOwners(client)
	equal(t, "nodes", nodes, 1)
	eventually(t, func() bool { return cluster.nodes[1].open.Load() == 0 })
}

func TestAChannelIsClosedOnceItsCallsHaveEnded(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		client := cluster.routed(options)
		owner := cluster.nodes[1]
		owner.entered, owner.hold = make(chan struct{}), make(chan struct{})
		failed := make(chan error)
		go func() {
			_, err := client.Put(t.Context(), keyIn(1), nil)
			failed <- err
		}()
		receive(t, owner.entered)
		cluster.answer(everywhere(cluster.nodes[0].address), nil)
		cluster.pass(5 * time.Second)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[0].address)
		equal(t, "connections", owner.open.Load(), 1)
		close(owner.hold)
		equal(t, "error", receive(t, failed), nil)
		eventually(t, func() bool { return owner.open.Load() == 0 })
	})
}

func TestAnOwnerThatIsGoneCostsNoErrorAndComesBack(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		options.Retry.MaxAttempts = 1
		client := cluster.routed(options)
		owner := cluster.nodes[1]
		owner.server.Stop()
		eventually(t, func() bool {
			// Of the connection's last calls nobody knows.
			_, err := client.Put(t.Context(), keyIn(1), nil)
			return err == nil
		})
		cluster.nodes[0].noted()
		for range 10 {
			put(t, client, keyIn(1))
		}
		keys, _ := cluster.nodes[0].noted()
		equal(t, "at the default node", len(keys), 10)
		equal(t, "questions", cluster.asked(), 1)
		cluster.pass(100 * time.Millisecond)
		eventually(t, func() bool { put(t, client, keyIn(1)); return cluster.asked() == 2 })

		owner.start(owner.address)
		cluster.pass(time.Minute)
		cluster.awaitRoute(client, keyIn(1), owner.address)
		put(t, client, keyIn(1))
		keys, _ = owner.noted()
		equal(t, "at the owner", keys, []string{keyIn(1)})
	})
}

func TestOwnersThatCannotBeCalledCostNoError(t *testing.T) {
	for _, owner := range []string{"", gone(t), "no address", "http://127.0.0.1:1"} {
		cluster := startSharing(t, 1)
		cluster.answer(everywhere(owner), nil)
		client := cluster.client(timecache.Options{})
		for partition := range 16 {
			put(t, client, keyIn(partition))
		}
		eventually(t, func() bool { return cluster.asked() == 1 })
		for partition := range 16 {
			put(t, client, keyIn(partition))
		}
	}
}

func TestANodeThatIsNoOwnerCostsAHopAndNoAttempt(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		options.Retry.MaxAttempts = 1
		client := cluster.routed(options)
		cluster.nodes[1].failWith(notOwner(""))
		put(t, client, keyIn(1))
		keys, _ := cluster.nodes[0].noted()
		equal(t, "at the default node", keys, []string{keyIn(1)})
		equal(t, "not again so soon", cluster.asked(), 1)
		cluster.answer(everywhere(cluster.nodes[0].address), nil)
		cluster.pass(100 * time.Millisecond)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[0].address)
		equal(t, "questions", cluster.asked(), 2)
	})
}

func TestACallThatMayHaveReachedTheOwnerIsRepeatedOnlyIfThatIsSafe(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		options.Retry.MinPause = time.Millisecond
		client := cluster.routed(options)
		cluster.nodes[1].failWith(status.Error(codes.Unavailable, "reset"))
		_, err := client.Put(t.Context(), keyIn(1), nil)
		var failure *timecache.Error
		if !errors.As(err, &failure) || !failure.MaybeApplied {
			t.Fatal(err)
		}
		keys, _ := cluster.nodes[0].noted()
		equal(t, "at the default node", len(keys), 0)
		equal(t, "left out", timecache.OwnerOf(client, keyIn(1)), "")
		cluster.pass(time.Second)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[1].address)
		equal(t, "found", must(client.Contains(t.Context(), keyIn(1)))(t), true)
		keys, _ = cluster.nodes[0].noted()
		equal(t, "at the default node", keys, []string{keyIn(1)})
		// Again so soon: for twice as long.
		cluster.pass(2*time.Second - 1)
		equal(t, "left out", timecache.OwnerOf(client, keyIn(1)), "")
		cluster.pass(1)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[1].address)
	})
}

func TestAnOwnersAnswerStands(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		client := cluster.routed(options)
		exists, _ := status.New(codes.FailedPrecondition, "exists").WithDetails(&errdetails.ErrorInfo{Reason: "KEY_EXISTS"})
		cluster.nodes[1].failWith(exists.Err())
		_, err := client.Put(t.Context(), keyIn(1), nil)
		refused(t, err, codes.FailedPrecondition, timecache.KeyExists)
		keys, _ := cluster.nodes[0].noted()
		equal(t, "at the default node", len(keys), 0)
	})
}

func TestServersWithoutOwnersAreSeldomAsked(t *testing.T) {
	noCluster, _ := status.New(codes.FailedPrecondition, "none").WithDetails(&errdetails.ErrorInfo{Reason: "NO_CLUSTER"})
	for refusal, pause := range map[error]time.Duration{
		noCluster.Err(): time.Minute,
		status.Error(codes.Unimplemented, "unknown"):    time.Minute,
		status.Error(codes.PermissionDenied, "no"):      time.Minute,
		status.Error(codes.NotFound, "no namespace"):    time.Second,
		status.Error(codes.ResourceExhausted, "slowly"): time.Second,
	} {
		cluster := startSharing(t, 2)
		cluster.answer(nil, refusal)
		client := cluster.client(timecache.Options{})
		put(t, client, keyIn(1))
		eventually(t, func() bool { return cluster.asked() == 1 })
		cluster.answer(everywhere(cluster.nodes[1].address), nil)
		// Before the answer is known nothing is due, either.
		eventually(t, func() bool { return !timecache.IsAsking(client) })
		cluster.pass(pause - 1)
		put(t, client, keyIn(1))
		equal(t, refusal.Error(), cluster.asked(), 1)
		cluster.pass(1)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[1].address)
	}
}

func TestWhatIsKnownIsBounded(t *testing.T) {
	cluster := startSharing(t, 1)
	many := make([]string, timecache.MaxOwnerNodes+10)
	for i := range many {
		many[i] = fmt.Sprint("127.0.0.1:", i+1)
	}
	cluster.answer(many, nil)
	client := cluster.client(timecache.Options{})
	eventually(t, func() bool {
		timecache.OwnerOf(client, "key")
		_, nodes := timecache.KnownOwners(client)
		return nodes == timecache.MaxOwnerNodes
	})
	cluster.answer(nil, nil)
	for i := range timecache.MaxOwnedNamespaces {
		cluster.pass(time.Second) // The first one is the oldest.
		timecache.OwnerOf(client.In(fmt.Sprint("n", i)), "key")
	}
	namespaces, nodes := timecache.KnownOwners(client)
	equal(t, "namespaces", namespaces, timecache.MaxOwnedNamespaces)
	equal(t, "nodes", nodes, 0)
	timecache.OwnerOf(client, "key")
	namespaces, _ = timecache.KnownOwners(client)
	equal(t, "namespaces", namespaces, timecache.MaxOwnedNamespaces)
}

func TestLookingForAnOwnerAllocatesNothing(t *testing.T) {
	cluster := startSharing(t, 2)
	client := cluster.routed(timecache.Options{})
	operation := timecache.GetOperation(keyIn(1))
	equal(t, "allocations", testing.AllocsPerRun(1000, func() { timecache.OwnerLookup(client, operation) }), 0)
}

func TestCallsGoOnWhileOwnersChange(t *testing.T) {
	cluster := startSharing(t, 3)
	client := cluster.routed(timecache.Options{})
	var callers sync.WaitGroup
	var ended atomic.Bool
	for range 8 {
		callers.Go(func() {
			for i := 0; !ended.Load(); i++ {
				key := keyIn(i % 16)
				entry, found, err := client.Get(t.Context(), key)
				if err != nil || !found || string(entry.Value) != key {
					t.Error(key, entry, err)
					return
				}
			}
		})
	}
	for round := range 50 {
		cluster.answer(everywhere(cluster.nodes[round%3].address), nil)
		cluster.pass(5 * time.Second)
		cluster.awaitRoute(client, keyIn(1), cluster.nodes[round%3].address)
	}
	ended.Store(true)
	callers.Wait()
}

func TestAClosedClientSaysSo(t *testing.T) {
	both(t, func(t *testing.T, options timecache.Options) {
		cluster := startSharing(t, 2)
		client := cluster.routed(options)
		client.Close()
		_, err := client.Put(t.Context(), keyIn(1), nil)
		refused(t, err, codes.Canceled, "")
		eventually(t, func() bool { return cluster.nodes[1].open.Load() == 0 })
	})
}
