package timecache_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// groupService keeps what it is asked, and lists in two pages.
type groupService struct {
	pb.UnimplementedGroupServiceServer
	created *pb.CreateGroupRequest
	sought  *pb.SeekGroupRequest
	updated *pb.UpdateGroupRequest
	listed  []*pb.ListUnsettledRequest
}

func (g *groupService) CreateGroup(_ context.Context, request *pb.CreateGroupRequest) (*pb.CreateGroupResponse, error) {
	g.created = request
	return &pb.CreateGroupResponse{Group: &pb.Group{Name: request.Name, Options: request.Options}}, nil
}

func (g *groupService) UpdateGroup(_ context.Context, request *pb.UpdateGroupRequest) (*pb.UpdateGroupResponse, error) {
	g.updated = request
	return &pb.UpdateGroupResponse{Group: request.Group}, nil
}

func (g *groupService) SeekGroup(_ context.Context, request *pb.SeekGroupRequest) (*pb.SeekGroupResponse, error) {
	g.sought = request
	return &pb.SeekGroupResponse{Unsettled: 7, Dropped: 2}, nil
}

func (g *groupService) ListUnsettled(_ context.Context, request *pb.ListUnsettledRequest) (*pb.ListUnsettledResponse, error) {
	g.listed = append(g.listed, proto.Clone(request).(*pb.ListUnsettledRequest))
	event := &pb.UnsettledEvent{Event: &pb.ExpiredEvent{Key: []byte("k" + request.PageToken), DeliveryToken: []byte("t")},
		State: pb.UnsettledState_UNSETTLED_STATE_IN_FLIGHT, MemberId: 3, Since: timestamppb.New(time.Unix(1, 0))}
	if request.PageToken == "" {
		return &pb.ListUnsettledResponse{Events: []*pb.UnsettledEvent{event}, NextPageToken: "2"}, nil
	}
	return &pb.ListUnsettledResponse{Events: []*pb.UnsettledEvent{event}}, nil
}

func TestGroupsStartAndMove(t *testing.T) {
	service := &groupService{}
	client := serveAll(t, timecache.Options{Namespace: "n"}, func(server *grpc.Server) {
		pb.RegisterGroupServiceServer(server, service)
	})
	at := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		position timecache.Position
		want     *pb.GroupPosition
	}{
		"unset": {nil, nil},
		"now":   {timecache.FromNow, &pb.GroupPosition{Position: &pb.GroupPosition_Start{}}},
		"earliest": {timecache.FromEarliest,
			&pb.GroupPosition{Position: &pb.GroupPosition_Start{Start: pb.WatchStart_WATCH_START_EARLIEST}}},
		"time":  {timecache.FromTime(at), &pb.GroupPosition{Position: &pb.GroupPosition_Time{Time: timestamppb.New(at)}}},
		"token": {timecache.AfterToken("t"), &pb.GroupPosition{Position: &pb.GroupPosition_ResumeToken{ResumeToken: []byte("t")}}},
	} {
		t.Run(name, func(t *testing.T) {
			must(client.CreateGroup(t.Context(), "g", timecache.GroupOptions{}, test.position))(t)
			result := must(client.SeekGroup(t.Context(), "g", test.position, timecache.DropUnsettled))(t)
			equal(t, "result", result, timecache.SeekResult{Unsettled: 7, Dropped: 2})
			if !proto.Equal(service.created.Start, test.want) || !proto.Equal(service.sought.Position, test.want) {
				t.Error(service.created, service.sought)
			}
			equal(t, "drops", service.sought.DropUnsettled, true)
		})
	}
	options := timecache.GroupOptions{KeyPrefix: new(""), SingleActive: new(true), RetryDelays: []time.Duration{0, time.Second}}
	group := must(client.CreateGroup(t.Context(), "g", options, nil))(t)
	equal(t, "options", group.Options, options)
	must(client.UpdateGroup(t.Context(), "g", timecache.GroupOptions{}, timecache.ToDefault("retry_delays")))(t)
	equal(t, "mask", service.updated.UpdateMask.Paths, []string{"options.retry_delays"})
}

func TestUnsettledEventsAreListedInPages(t *testing.T) {
	service := &groupService{}
	client := serveAll(t, timecache.Options{}, func(server *grpc.Server) { pb.RegisterGroupServiceServer(server, service) })
	keys := ""
	for one, err := range client.ListUnsettled(t.Context(), "g", timecache.UnsettledOptions{KeyPrefix: "k", PageSize: 5}) {
		if err != nil {
			t.Fatal(err)
		}
		keys += one.Event.Key
		equal(t, "state", one.State.String(), "IN_FLIGHT")
		equal(t, "member", one.MemberID, 3)
		equal(t, "due", one.Due.IsZero(), true)
	}
	equal(t, "keys", keys, "kk2")
	equal(t, "page", service.listed[1].PageSize, 5)
	equal(t, "prefix", string(service.listed[1].KeyPrefix), "k")
}

// fetching answers fetches, batches, and streams of changes that break.
type fetching struct {
	pb.UnimplementedTimeCacheServiceServer
	mu      sync.Mutex
	fetched *pb.FetchExpiredRequest
	limit   time.Duration
	fail    int // Batches.
	batches int
	atomic  bool
	changes []*pb.WatchChangesRequest
}

func (f *fetching) FetchExpired(ctx context.Context, request *pb.FetchExpiredRequest) (*pb.FetchExpiredResponse, error) {
	f.fetched = request
	deadline, _ := ctx.Deadline()
	f.limit = time.Until(deadline)
	return &pb.FetchExpiredResponse{Events: []*pb.ExpiredEvent{{Key: []byte("k"), Traceparent: "tp"}}, Lost: 2,
		DeliveredWatermark: timestamppb.New(time.Unix(9, 0))}, nil
}

func (f *fetching) Execute(_ context.Context, request *pb.ExecuteRequest) (*pb.ExecuteResponse, error) {
	f.batches++
	f.atomic = request.Atomic
	if f.batches <= f.fail {
		return nil, status.Error(codes.Unavailable, "lost")
	}
	return &pb.ExecuteResponse{Results: make([]*pb.OperationResult, len(request.Operations))}, nil
}

func (f *fetching) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		f.mu.Lock()
		f.batches++
		fails := f.batches <= f.fail
		f.mu.Unlock()
		if fails {
			return status.Error(codes.Unavailable, "lost")
		}
		if err := stream.Send(answersTo(request)); err != nil {
			return err
		}
	}
}

func (f *fetching) WatchChanges(request *pb.WatchChangesRequest, stream grpc.ServerStreamingServer[pb.WatchChangesResponse]) error {
	f.mu.Lock()
	f.changes = append(f.changes, request)
	number := len(f.changes)
	f.mu.Unlock()
	err := stream.Send(&pb.WatchChangesResponse{Namespace: "n", ResumeToken: []byte{byte(number)}, Lost: 3, Changes: []*pb.ChangeEvent{
		{Kind: pb.ChangeKind_CHANGE_KIND_RENEWED, Key: []byte("k"), Version: uint64(number), Time: timestamppb.New(time.Unix(1, 0))}}})
	if err != nil || number == 1 {
		return status.Error(codes.Unavailable, "stopping")
	}
	<-stream.Context().Done()
	return nil
}

func TestFetchExpired(t *testing.T) {
	service := &fetching{}
	client := serve(t, service, timecache.Options{Namespace: "n"})
	batch := must(client.FetchExpired(t.Context(), "g", timecache.FetchOptions{MaxEvents: 5, Wait: 20 * time.Second}))(t)
	equal(t, "namespace", batch.Namespace, "n")
	equal(t, "event", batch.Events[0].Traceparent, "tp")
	equal(t, "lost", batch.Lost, 2)
	equal(t, "delivered", batch.Delivered.Unix(), 9)
	equal(t, "most", service.fetched.GetMaxEvents(), 5)
	equal(t, "wait", service.fetched.Wait.AsDuration(), 20*time.Second)
	if service.limit < 20*time.Second || service.limit > 25*time.Second {
		t.Error("deadline:", service.limit)
	}
}

func TestChangesGoOnAfterABreak(t *testing.T) {
	service := &fetching{}
	client := serve(t, service, timecache.Options{Namespace: "n"})
	next, stop := iter.Pull2(client.WatchChanges(t.Context(), timecache.WatchOptions{KeyPrefix: "k", Reconnect: quick}))
	defer stop()
	for version := range uint64(2) {
		batch, err, _ := next()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "kind", batch.Changes[0].Kind.String(), "RENEWED")
		equal(t, "version", batch.Changes[0].Version, version+1)
		equal(t, "lost", batch.Lost, 3)
		equal(t, "reconnected", batch.Reconnected, version == 1)
	}
	equal(t, "prefix", string(service.changes[1].KeyPrefix), "k")
	equal(t, "tokens", service.changes[1].ResumeTokens, [][]byte{{1}})
}

func TestBatchesThatAreSafeAreRepeated(t *testing.T) {
	once := []timecache.Operation{timecache.GetOperation("a"), timecache.PutOperation("b", nil)}
	safe := []timecache.Operation{timecache.GetOperation("a"), timecache.ContainsOperation("c", timecache.IfAbsent),
		timecache.PutOperation("b", nil, timecache.IdempotencyID("1"))}
	for name, test := range map[string]struct {
		operations []timecache.Operation
		code       codes.Code
		batches    int
	}{"once": {once, codes.Unavailable, 1}, "safe": {safe, codes.OK, 3}} {
		t.Run(name, func(t *testing.T) {
			service := &fetching{fail: 2}
			client := serve(t, service, timecache.Options{Retry: fast})
			_, err := client.Execute(t.Context(), test.operations, timecache.Atomic)
			equal(t, "code", status.Code(err), test.code)
			equal(t, "batches", service.batches, test.batches)
			equal(t, "atomic", service.atomic, true)
		})
		t.Run(name+" in a pipeline", func(t *testing.T) {
			service := &fetching{fail: 2}
			client := serve(t, service, timecache.Options{Retry: fast})
			pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{BatchOperations: 10, RequestsInFlight: 1})
			var results []timecache.Result
			for _, operation := range test.operations {
				if err := pipeline.Add(operation, func(result timecache.Result) { results = append(results, result) }); err != nil &&
					test.code == codes.OK {
					t.Fatal(err)
				}
			}
			equal(t, "code", status.Code(pipeline.Close()), test.code)
			if test.code == codes.OK {
				equal(t, "results", len(results), len(test.operations))
				for _, result := range results {
					equal(t, "error", result.Err, nil)
				}
			}
		})
	}
}

// A pipeline gives up as a call does.
func TestAPipelineGivesUp(t *testing.T) {
	client := serve(t, &fetching{fail: 100}, timecache.Options{Retry: fast})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{})
	result := pipeline.Do(t.Context(), timecache.GetOperation("k"))
	refused(t, result.Err, codes.Unavailable, "")
	refused(t, pipeline.Close(), codes.Unavailable, "")
}

func TestNamespacesKeepChanges(t *testing.T) {
	options := timecache.NamespaceOptions{ChangeRetention: new(time.Minute), ChangeRetentionBytes: new(uint64(1 << 20))}
	message := timecache.NamespaceOptionsProto(&options)
	equal(t, "retention", message.ChangeRetention.AsDuration(), time.Minute)
	equal(t, "both ways", timecache.NamespaceOptionsFrom(message), options)
	equal(t, "unset", timecache.NamespaceOptionsFrom(&pb.NamespaceOptions{Ttl: durationpb.New(1)}).ChangeRetention, nil)
}
