package timecache_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// clusterNode refuses calls while it is no owner, and notes those that it answers.
type clusterNode struct {
	pb.UnimplementedTimeCacheServiceServer
	address string
	server  *grpc.Server
	hang    atomic.Bool  // No call ends by itself.
	refused atomic.Int64 // Refusals that are left, then it owns.

	mu      sync.Mutex
	fail    error
	keys    []string
	tokens  []string
	release chan struct{} // Closed where streams are to end.
	settled chan struct{}
}

func startNode(t *testing.T) *clusterNode {
	t.Helper()
	n := &clusterNode{server: grpc.NewServer(), release: make(chan struct{}), settled: make(chan struct{}, 100)}
	pb.RegisterTimeCacheServiceServer(n.server, n)
	pb.RegisterServerServiceServer(n.server, clusterAdmin{})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	n.address = listener.Addr().String()
	go n.server.Serve(listener)
	t.Cleanup(n.server.Stop)
	return n
}

type clusterAdmin struct {
	pb.UnimplementedServerServiceServer
}

func (clusterAdmin) GetCluster(context.Context, *pb.GetClusterRequest) (*pb.GetClusterResponse, error) {
	return &pb.GetClusterResponse{Name: "eu", Owner: "a",
		Nodes: []*pb.ClusterNode{{Name: "a", Role: pb.NodeRole_NODE_ROLE_OWNER}}}, nil
}

func (clusterAdmin) HandOver(_ context.Context, request *pb.HandOverRequest) (*pb.HandOverResponse, error) {
	return &pb.HandOverResponse{To: cmp.Or(request.To, "the best")}, nil
}

// await waits for the end of a call to a node that hangs.
func (n *clusterNode) await(ctx context.Context) {
	if n.hang.Load() {
		<-ctx.Done()
	}
}

// gone is an address that nothing listens at.
func gone(t *testing.T) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

func notOwner(owner string) error {
	info := &errdetails.ErrorInfo{Reason: "NOT_OWNER", Domain: "timecached"}
	if owner != "" {
		info.Metadata = map[string]string{"owner_address": owner}
	}
	s, _ := status.New(codes.Unavailable, "not the owner").WithDetails(info)
	return s.Err()
}

// failWith ends calls from now on; nil: answers them.
func (n *clusterNode) failWith(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = err
}

// handOver ends streams, too.
func (n *clusterNode) handOver(err error) {
	n.failWith(err)
	close(n.release)
}

func (n *clusterNode) enter(key string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused.Load() > 0 && n.refused.Add(-1) == 0 {
		n.fail = nil
	}
	if n.fail == nil && key != "" {
		n.keys = append(n.keys, key)
	}
	return n.fail
}

func (n *clusterNode) noted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys
}

func (n *clusterNode) Put(ctx context.Context, request *pb.PutRequest) (*pb.PutResponse, error) {
	n.await(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := n.enter(string(request.Key)); err != nil {
		return nil, err
	}
	return &pb.PutResponse{Version: 1}, nil
}

func (n *clusterNode) Contains(context.Context, *pb.ContainsRequest) (*pb.ContainsResponse, error) {
	return &pb.ContainsResponse{Contains: true}, n.enter("")
}

func (n *clusterNode) Scan(_ *pb.ScanRequest, stream grpc.ServerStreamingServer[pb.ScanResponse]) error {
	if err := n.enter(""); err != nil {
		return err
	}
	return stream.Send(&pb.ScanResponse{Entries: []*pb.Entry{{Key: []byte("scanned")}}})
}

func (n *clusterNode) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	n.await(stream.Context())
	for {
		request, err := stream.Recv()
		if err != nil || stream.Context().Err() != nil {
			return nil
		}
		for _, operation := range request.Operations {
			if err := n.enter(string(operation.GetPut().GetKey())); err != nil {
				return err
			}
		}
		if err := stream.Send(answersTo(request)); err != nil {
			return err
		}
	}
}

func (n *clusterNode) WatchExpired(request *pb.WatchExpiredRequest, stream grpc.ServerStreamingServer[pb.WatchExpiredResponse]) error {
	n.await(stream.Context())
	if err := n.enter(""); err != nil {
		return err
	}
	n.mu.Lock()
	for _, token := range request.ResumeTokens {
		n.tokens = append(n.tokens, string(token))
	}
	n.mu.Unlock()
	stream.Send(&pb.WatchExpiredResponse{Namespace: "default", ResumeToken: []byte(n.address),
		Events: []*pb.ExpiredEvent{{Key: []byte(n.address)}}})
	select {
	case <-n.release:
		return n.enter("")
	case <-stream.Context().Done():
		return nil
	}
}

func (n *clusterNode) ConsumeExpired(_ *pb.ConsumeExpiredRequest, stream grpc.ServerStreamingServer[pb.ConsumeExpiredResponse]) error {
	if err := n.enter(""); err != nil {
		return err
	}
	stream.Send(&pb.ConsumeExpiredResponse{Namespace: "default",
		Events: []*pb.ExpiredEvent{{Key: []byte("k"), EventId: 7, Attempt: 1}}})
	<-stream.Context().Done()
	return nil
}

func (n *clusterNode) SettleExpired(_ context.Context, request *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
	if err := n.enter(""); err != nil {
		return nil, err
	}
	n.settled <- struct{}{}
	return &pb.SettleExpiredResponse{Results: make([]*pb.SettleResult, len(request.Settlements))}, nil
}

func clientOf(t *testing.T, addresses ...string) *timecache.Client {
	t.Helper()
	client := must(timecache.NewClient(strings.Join(addresses, ", "), timecache.Options{Timeout: patience}))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

func put(t *testing.T, client *timecache.Client, key string) {
	t.Helper()
	must(client.Put(t.Context(), key, []byte("value")))(t)
}

func TestCallsGoToTheOwnerThatTheNodeNames(t *testing.T) {
	a, b := startNode(t), startNode(t)
	client := clientOf(t, a.address, b.address)
	a.failWith(notOwner(b.address))
	put(t, client, "key")
	equal(t, "keys", b.noted(), []string{"key"})
	for entry, err := range clientOf(t, a.address, b.address).Scan(t.Context()) {
		equal(t, "error", err, nil)
		equal(t, "scanned", entry.Key, "scanned")
	}
}

func TestCallsWaitUntilANodeOwns(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(""))
	b.failWith(notOwner(""))
	b.refused.Store(3)
	put(t, clientOf(t, a.address, b.address), "key")
	equal(t, "keys", b.noted(), []string{"key"})
}

func TestWithoutAnOwnerACallEndsWithItsDeadline(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(""))
	b.failWith(notOwner(""))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := clientOf(t, a.address, b.address).Put(ctx, "key", nil)
	var failure *timecache.Error
	if !errors.As(err, &failure) || failure.Reason == timecache.NotOwner && failure.MaybeApplied {
		t.Fatal(err)
	}
}

func TestOneAddressIsEnoughToFindTheOwner(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(b.address))
	put(t, clientOf(t, a.address), "key")
	equal(t, "keys", b.noted(), []string{"key"})
}

func TestNodesThatAreGoneAreLeftByTheSameCall(t *testing.T) {
	a, b := startNode(t), startNode(t)
	put(t, clientOf(t, gone(t), b.address), "first")
	a.failWith(notOwner(gone(t)))
	put(t, clientOf(t, a.address, b.address), "second")
	equal(t, "keys", b.noted(), []string{"first", "second"})
	_, err := clientOf(t, gone(t), gone(t)).Put(t.Context(), "key", nil)
	var failure *timecache.Error
	if !errors.As(err, &failure) || failure.Code != codes.Unavailable || failure.MaybeApplied {
		t.Fatal(err)
	}
}

func TestABrokenCallIsRepeatedElsewhereOnlyIfThatIsSafe(t *testing.T) {
	a, b := startNode(t), startNode(t)
	client := clientOf(t, a.address, b.address)
	a.failWith(status.Error(codes.Unavailable, "reset"))
	_, err := client.Put(t.Context(), "key", nil)
	var failure *timecache.Error
	if !errors.As(err, &failure) || !failure.MaybeApplied {
		t.Fatal(err)
	}
	put(t, client, "next")
	equal(t, "keys", b.noted(), []string{"next"})
	a.failWith(nil)
	b.failWith(status.Error(codes.Unavailable, "reset"))
	equal(t, "contains", must(client.Contains(t.Context(), "key"))(t), true)
}

func TestAWatchResumesAtTheOwnerWithItsToken(t *testing.T) {
	a, b := startNode(t), startNode(t)
	watch := read(t, clientOf(t, a.address, b.address).Watch(t.Context(), timecache.WatchOptions{Reconnect: quick}))
	equal(t, "first", watch.batch().Events[0].Key, a.address)
	a.handOver(notOwner(b.address))
	batch := watch.batch()
	equal(t, "second", batch.Events[0].Key, b.address)
	equal(t, "reconnected", batch.Reconnected, true)
	equal(t, "tokens", b.tokens, []string{a.address})
}

func TestAWatchResumesAtTheNextAddressWhenItsNodeDies(t *testing.T) {
	a, b := startNode(t), startNode(t)
	watch := read(t, clientOf(t, a.address, b.address).Watch(t.Context(), timecache.WatchOptions{Reconnect: quick}))
	watch.batch()
	b.failWith(notOwner(a.address))
	b.refused.Store(3)
	a.server.Stop()
	equal(t, "second", watch.batch().Events[0].Key, b.address)
	equal(t, "tokens", b.tokens, []string{a.address})
}

func TestAWatchThatBeginsFindsTheOwner(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(b.address))
	for _, first := range []string{a.address, gone(t)} {
		reconnect := timecache.Reconnect{OnBreak: func(err error) { t.Error(err) }}
		watch := read(t, clientOf(t, first, b.address).Watch(t.Context(), timecache.WatchOptions{Reconnect: reconnect}))
		equal(t, "key", watch.batch().Events[0].Key, b.address)
	}
}

func TestAWorkerTakesAndSettlesAtTheOwner(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(b.address))
	worker := clientOf(t, a.address, b.address).Worker("g",
		func(context.Context, *timecache.ExpiredEvent) error { return nil }, timecache.WorkerOptions{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	receive(t, b.settled)
	stop()
	receive(t, ended)
}

func TestAPipelineThatIsRefusedGoesOnAtTheOwner(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.failWith(notOwner(b.address))
	for _, first := range []string{a.address, gone(t)} {
		pipeline := clientOf(t, first, b.address).Pipeline(t.Context(), timecache.PipelineOptions{})
		for range 10 {
			pipeline.Add(timecache.PutOperation("key", nil), func(result timecache.Result) {
				if result.Err != nil {
					t.Error(result.Err)
				}
			})
		}
		equal(t, "end", pipeline.Close(), nil)
	}
	equal(t, "operations", len(b.noted()), 20)
}

func TestAPipelineGoesOnAtTheNextOwner(t *testing.T) {
	a, b := startNode(t), startNode(t)
	pipeline := clientOf(t, a.address, b.address).Pipeline(t.Context(), timecache.PipelineOptions{})
	equal(t, "first", pipeline.Do(t.Context(), timecache.PutOperation("first", nil)).Err, nil)
	a.failWith(notOwner(b.address))
	for range 10 {
		pipeline.Add(timecache.PutOperation("later", nil), func(result timecache.Result) {
			if result.Err != nil {
				t.Error(result.Err)
			}
		})
	}
	equal(t, "end", pipeline.Close(), nil)
	equal(t, "at the first", a.noted(), []string{"first"})
	equal(t, "at the next", len(b.noted()), 10)
}

func TestWhatANodeWroteAsItLostTheOwnershipMayBeStored(t *testing.T) {
	a := startNode(t)
	lost, _ := status.New(codes.Unavailable, "lost").WithDetails(&errdetails.ErrorInfo{Reason: "OWNERSHIP_LOST"})
	a.failWith(lost.Err())
	_, err := clientOf(t, a.address).Put(t.Context(), "key", nil)
	var failure *timecache.Error
	if !errors.As(err, &failure) || !failure.MaybeApplied {
		t.Fatal(err)
	}
}

func TestAPipelineWithoutAnOwnerEndsWithTheTimeout(t *testing.T) {
	a := startNode(t)
	a.failWith(notOwner(""))
	client := must(timecache.NewClient(a.address, timecache.Options{Timeout: 100 * time.Millisecond}))(t)
	defer client.Close()
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	result := pipeline.Do(t.Context(), timecache.PutOperation("key", nil))
	if result.Err == nil || pipeline.Close() == nil {
		t.Fatal(result)
	}
}

func TestANodeThatHangsIsLeftByTheNextCall(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.hang.Store(true)
	client := must(timecache.NewClusterClient([]string{a.address, b.address}, timecache.Options{Timeout: 100 * time.Millisecond}))(t)
	defer client.Close()
	_, err := client.Put(t.Context(), "first", nil)
	var failure *timecache.Error
	if !errors.As(err, &failure) || failure.Code != codes.DeadlineExceeded {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(client.Put(ctx, "next", nil))(t)
	equal(t, "keys", b.noted(), []string{"next"})
}

func TestANodeThatHangsIsLeftByTheNextPipeline(t *testing.T) {
	a, b := startNode(t), startNode(t)
	a.hang.Store(true)
	client := must(timecache.NewClusterClient([]string{a.address, b.address}, timecache.Options{Timeout: 100 * time.Millisecond}))(t)
	defer client.Close()
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	var failure *timecache.Error
	if err := pipeline.Do(t.Context(), timecache.PutOperation("first", nil)).Err; !errors.As(err, &failure) || failure.Code != codes.DeadlineExceeded {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(client.Put(ctx, "next", nil))(t)
	equal(t, "keys", b.noted(), []string{"next"})
}

func TestTheOnlyNodeIsKeptThoughItHangs(t *testing.T) {
	a := startNode(t)
	a.hang.Store(true)
	client := clientOf(t, a.address)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := client.Put(ctx, "key", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	a.hang.Store(false)
	put(t, client, "next")
	equal(t, "keys", a.noted(), []string{"next"})
}

func TestAWatchLeavesANodeThatHangs(t *testing.T) {
	a, b := startNode(t), startNode(t)
	reconnect := timecache.Reconnect{MaxSilence: 500 * time.Millisecond, MinPause: time.Millisecond}
	watch := read(t, clientOf(t, a.address, b.address).Watch(t.Context(), timecache.WatchOptions{Reconnect: reconnect}))
	equal(t, "first", watch.batch().Events[0].Key, a.address)
	equal(t, "second", watch.batch().Events[0].Key, b.address)
	b.mu.Lock()
	equal(t, "token", b.tokens[0], a.address)
	b.mu.Unlock()
	// It is silent from the beginning.
	a.hang.Store(true)
	watch = read(t, clientOf(t, a.address, b.address).Watch(t.Context(), timecache.WatchOptions{Reconnect: reconnect}))
	equal(t, "first", watch.batch().Events[0].Key, b.address)
}

func TestSilenceIsBoundedWhereThereAreOtherNodes(t *testing.T) {
	bound := func(heartbeat, given time.Duration, addresses ...string) time.Duration {
		return timecache.MaxSilenceOf(clientOf(t, addresses...), heartbeat, given)
	}
	equal(t, "one", bound(0, 0, "a:1"), 0)
	equal(t, "two", bound(0, 0, "a:1", "b:1"), 10*time.Second)
	equal(t, "rare heartbeats", bound(time.Minute, 0, "a:1", "b:1"), 4*time.Minute)
	equal(t, "given", bound(0, time.Hour, "a:1", "b:1"), time.Hour)
}

func TestTheClusterIsDescribedAndHandedOver(t *testing.T) {
	a := startNode(t)
	client := clientOf(t, a.address)
	cluster := must(client.GetCluster(t.Context()))(t)
	equal(t, "owner", cluster.Owner, "a")
	equal(t, "role", cluster.Nodes[0].Role, pb.NodeRole_NODE_ROLE_OWNER)
	equal(t, "successor", must(client.HandOver(t.Context(), "b"))(t), "b")
	equal(t, "any", must(client.HandOver(t.Context(), ""))(t), "the best")
}

func TestWrongAddressesAreNamed(t *testing.T) {
	for addresses, named := range map[string]string{
		"a:1,,b:1": `address ""`, "a:1,b": `address "b"`,
		strings.Repeat("a:1,", 16) + "a:1": "at most 16"} {
		if _, err := timecache.NewClient(addresses, timecache.Options{}); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", addresses, err)
		}
	}
	if _, err := timecache.NewClusterClient(nil, timecache.Options{}); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Error(err)
	}
	_, err := timecache.NewClient("127.0.0.1:1,cache:1", timecache.Options{Token: "t"})
	if err == nil || !strings.Contains(err.Error(), "not sent to cache:1") {
		t.Error(err)
	}
}
