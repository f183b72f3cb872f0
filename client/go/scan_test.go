package timecache_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// breaking is a server whose streams bring what a test says, and break.
type breaking struct {
	pb.UnimplementedTimeCacheServiceServer
	mu      sync.Mutex
	scans   [][]any // Messages, and how each stream ends; the last one well.
	watches [][]any
	asked   []string // The positions.
}

func next(mu *sync.Mutex, from *[][]any) []any {
	mu.Lock()
	defer mu.Unlock()
	if len(*from) == 0 {
		return []any{status.Error(codes.Internal, "no more streams")}
	}
	first := (*from)[0]
	*from = (*from)[1:]
	return first
}

func (b *breaking) Scan(request *pb.ScanRequest, s grpc.ServerStreamingServer[pb.ScanResponse]) error {
	b.mu.Lock()
	b.asked = append(b.asked, string(request.Position))
	b.mu.Unlock()
	for _, message := range next(&b.mu, &b.scans) {
		if err, is := message.(error); is {
			return err
		}
		if err := s.Send(message.(*pb.ScanResponse)); err != nil {
			return err
		}
	}
	return nil
}

func (b *breaking) WatchExpired(_ *pb.WatchExpiredRequest, s grpc.ServerStreamingServer[pb.WatchExpiredResponse]) error {
	for _, message := range next(&b.mu, &b.watches) {
		if err, is := message.(error); is {
			return err
		}
		if err := s.Send(message.(*pb.WatchExpiredResponse)); err != nil {
			return err
		}
	}
	<-s.Context().Done()
	return nil
}

func page(key, position string) *pb.ScanResponse {
	return &pb.ScanResponse{Entries: []*pb.Entry{{Key: []byte(key)}}, Position: []byte(position)}
}

func scanned(client *timecache.Client) (keys string, err error) {
	for entry, err := range client.Scan(context.Background(), timecache.Prefix("k")) {
		if err != nil {
			return keys, err
		}
		keys += entry.Key
	}
	return keys, nil
}

var fast = timecache.RetryPolicy{MinPause: time.Millisecond, MaxPause: time.Millisecond}

// More breaks than there are attempts without a page.
func TestScanGoesOn(t *testing.T) {
	lost := status.Error(codes.Unavailable, "broken")
	tooLong := status.Error(codes.DeadlineExceeded, "") // It was not read for a while.
	service := &breaking{scans: [][]any{{lost}, {page("a", "1"), lost}, {page("b", "2"), tooLong}, {page("c", "3"), lost},
		{page("d", "4"), lost}, {page("e", "5")}}}
	keys, err := scanned(serve(t, service, timecache.Options{Retry: fast}))
	if keys != "abcde" || err != nil {
		t.Error(keys, err)
	}
	equal(t, "positions", service.asked, []string{"", "", "1", "2", "3", "4"})
}

func TestScanThatCannotGoOnEnds(t *testing.T) {
	lost := status.Error(codes.Unavailable, "broken")
	for name, test := range map[string]struct {
		scans [][]any
		code  codes.Code
	}{
		"an older server":             {[][]any{{page("a", ""), lost}}, codes.Unavailable},
		"a server that was restarted": {[][]any{{page("a", "1"), lost}, {status.Error(codes.InvalidArgument, "")}}, codes.InvalidArgument},
		"a server that stays away":    {[][]any{{page("a", "1"), lost}, {lost}, {lost}}, codes.Unavailable},
	} {
		keys, err := scanned(serve(t, &breaking{scans: test.scans}, timecache.Options{Retry: fast}))
		if keys != "a" || status.Code(err) != test.code {
			t.Error(name, keys, err)
		}
	}
}

// So gRPC reports RST_STREAM with ENHANCE_YOUR_CALM.
func TestWatchThatIsThrottledComesBack(t *testing.T) {
	batch := &pb.WatchExpiredResponse{Namespace: timecache.DefaultNamespace}
	calm := status.Error(codes.ResourceExhausted, "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM")
	client := serve(t, &breaking{watches: [][]any{{batch, calm}, {batch}}}, timecache.Options{})
	watch := read(t, client.Watch(t.Context(), timecache.WatchOptions{Reconnect: quick}))
	watch.batch()
	equal(t, "reconnected", watch.batch().Reconnected, true)
}

func maybeApplied(t *testing.T, err error) bool {
	t.Helper()
	failure, is := err.(*timecache.Error)
	if !is {
		t.Fatal(err)
	}
	return failure.MaybeApplied
}

func TestMaybeApplied(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	listener.Close()
	refusing := must(timecache.NewClient(address, timecache.Options{}))(t)
	defer refusing.Close()
	_, err := refusing.Put(t.Context(), "k", nil)
	equal(t, "connection refused", maybeApplied(t, err), false)
	refused(t, err, codes.Unavailable, "")

	unknown := must(timecache.NewClient("no-such-host.invalid:1", timecache.Options{}))(t)
	defer unknown.Close()
	_, err = unknown.Put(t.Context(), "k", nil)
	equal(t, "no such host", maybeApplied(t, err), false)

	lost := status.Error(codes.Unavailable, "broken")
	client := serve(t, &flaky{fail: []error{lost}}, timecache.Options{Batching: new(false)})
	_, err = client.Put(t.Context(), "k", nil)
	equal(t, "broken", maybeApplied(t, err), true)

	exists := status.FromProto(refusal(t, codes.FailedPrecondition, timecache.KeyExists)).Err()
	client = serve(t, &flaky{fail: []error{exists, lost, exists}}, timecache.Options{Batching: new(false), Retry: fast})
	_, err = client.Put(t.Context(), "k", nil)
	equal(t, "refused", maybeApplied(t, err), false)
	// The first of two attempts may have been done.
	_, err = client.Put(t.Context(), "k", nil, timecache.Repeatable())
	refused(t, err, codes.FailedPrecondition, timecache.KeyExists)
	equal(t, "refused after a break", maybeApplied(t, err), true)
}

// requests remembers what it is asked for.
type requests struct {
	pb.UnimplementedTimeCacheServiceServer
	put   *pb.PutRequest
	touch *pb.TouchRequest
}

func (r *requests) Put(_ context.Context, request *pb.PutRequest) (*pb.PutResponse, error) {
	r.put = request
	return &pb.PutResponse{}, nil
}

func (r *requests) Touch(_ context.Context, request *pb.TouchRequest) (*pb.TouchResponse, error) {
	r.touch = request
	return &pb.TouchResponse{}, nil
}

func TestDueDatesGoOnTheWire(t *testing.T) {
	service := &requests{}
	client := serve(t, service, timecache.Options{})
	due := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	must(client.Put(t.Context(), "k", nil, timecache.ExpireAt(due), timecache.AllowPast, timecache.TTL(time.Minute)))(t)
	equal(t, "expire_at", service.put.ExpireAt.AsTime(), due)
	equal(t, "allow_past", service.put.AllowPast, true)
	equal(t, "ttl", service.put.Ttl.AsDuration(), time.Minute)
	if _, _, err := client.Touch(t.Context(), "k", timecache.ExpireAt(due)); err != nil {
		t.Error(err)
	}
	equal(t, "expire_at", service.touch.ExpireAt.AsTime(), due)
	equal(t, "allow_past", service.touch.AllowPast, false)
}

func TestDecodeDeadLetter(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message := &pb.ExpiredEvent{Namespace: "orders", Key: []byte("order:1"), Value: []byte("42"), Attempt: 5}
	encode := func() []byte { return must(proto.Marshal(message))(t) }
	entry := &timecache.Entry{Key: "orders/cancel/12", Value: encode(), PutTime: at}
	old := must(timecache.DecodeDeadLetter(entry))(t)
	equal(t, "event", old.Event, timecache.ExpiredEvent{Namespace: "orders", Key: "order:1", Value: []byte("42"),
		Attempt: 5, EventID: 12})
	old.Event = timecache.ExpiredEvent{}
	equal(t, "an old letter", old, timecache.DeadLetter{Group: "cancel", Attempts: 5, Time: at})

	message.DeadLetter = &pb.DeadLetter{Group: "cancel", Attempts: 4, Time: timestamppb.New(at.Add(time.Hour)),
		Reason: pb.DeadLetterReason_DEAD_LETTER_REASON_TERMINATED, ReasonText: "no card"}
	entry.Value = encode()
	letter := must(timecache.DecodeDeadLetter(entry))(t)
	letter.Event = timecache.ExpiredEvent{}
	equal(t, "a letter", letter, timecache.DeadLetter{Group: "cancel", Attempts: 4,
		Reason: timecache.DeadLetterTerminated, ReasonText: "no card", Time: at.Add(time.Hour)})
	equal(t, "reason", letter.Reason.String(), "TERMINATED")

	for _, key := range []string{"orders/cancel", "orders/cancel/x", "other/cancel/12", "orders/cancel/12/3"} {
		if _, err := timecache.DecodeDeadLetter(&timecache.Entry{Key: key, Value: entry.Value}); err == nil {
			t.Error("decoded:", key)
		}
	}
	broken := bytes.Repeat([]byte{0xff}, 3)
	if _, err := timecache.DecodeDeadLetter(&timecache.Entry{Key: "orders/cancel/12", Value: broken}); err == nil {
		t.Error("decoded what is none")
	}
}
