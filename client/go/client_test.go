package timecache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

// virtual has a client of a namespace of its own, on a server with a virtual clock.
func virtual(t *testing.T, options timecache.NamespaceOptions) (*timecache.Client, *timecachetest.Clock) {
	t.Helper()
	client := timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{Namespace: "main"})
	if _, err := client.CreateNamespace(t.Context(), "main", options); err != nil {
		t.Fatal(err)
	}
	return client, timecachetest.NewClock(client)
}

// must takes the error out of two results.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// refused checks an error's code and reason.
func refused(t *testing.T, err error, code codes.Code, reason timecache.Reason) {
	t.Helper()
	var failure *timecache.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v, want %v (%v)", err, code, reason)
	}
	if failure.Code != code || failure.Reason != reason || status.Code(err) != code {
		t.Fatalf("got %v, want %v (%v)", err, code, reason)
	}
	if reason != "" && !errors.Is(err, reason) {
		t.Fatalf("%v is not %v", err, reason)
	}
}

func TestPutGetRemove(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11))})
	ctx := t.Context()
	key := "\x00\xff key"
	put := must(client.Put(ctx, key, []byte("\xfe\x00"), timecache.TTL(5*time.Second), timecache.ReturnPrevious))(t)
	if put.Version == 0 || put.Previous != nil {
		t.Errorf("a first put: %+v", put)
	}
	entry, found, err := client.Get(ctx, key)
	want := timecache.Entry{Key: key, Value: []byte("\xfe\x00"), Version: put.Version,
		PutTime: time.Unix(0, 0).UTC(), Deadline: time.Unix(5, 0).UTC()}
	if err != nil || !found {
		t.Fatal(found, err)
	}
	equal(t, "entry", entry, want)

	again := must(client.Put(ctx, key, []byte("2"), timecache.KeepDeadline, timecache.IfPresent, timecache.ReturnPrevious))(t)
	equal(t, "previous", again.Previous, &want)
	_, err = client.Put(ctx, key, nil, timecache.IfAbsent)
	refused(t, err, codes.FailedPrecondition, timecache.KeyExists)
	_, err = client.Put(ctx, "absent", nil, timecache.IfPresent)
	refused(t, err, codes.FailedPrecondition, timecache.KeyNotFound)
	_, err = client.Put(ctx, key, nil, timecache.IfVersion(put.Version))
	refused(t, err, codes.FailedPrecondition, timecache.VersionMismatch)
	_, err = client.Put(ctx, key, nil, timecache.TTL(0))
	refused(t, err, codes.InvalidArgument, timecache.InvalidField)
	var failure *timecache.Error
	if errors.As(err, &failure); len(failure.Violations) != 1 || failure.Violations[0].Field != "ttl" || failure.RequestID == "" {
		t.Errorf("the error of a ttl: %+v", failure)
	}

	version, found, err := client.Touch(ctx, key, timecache.TTL(20*time.Second), timecache.IfVersion(again.Version))
	if version != again.Version || !found || err != nil {
		t.Error(version, found, err)
	}
	if _, found, err := client.Touch(ctx, "absent"); found || err != nil {
		t.Error(found, err)
	}
	must(clock.Advance(ctx, 15*time.Second))(t)
	if !must(client.Contains(ctx, key))(t) {
		t.Error("a touched entry is gone")
	}
	equal(t, "size", must(client.Size(ctx))(t), timecache.SizeResult{Entries: 1, Bytes: uint64(len(key) + 1)})
	if entry, _, _ := client.Get(ctx, key, timecache.WithTouch); entry.Deadline != time.Unix(35, 0).UTC() {
		t.Error("after a get with touch:", entry.Deadline)
	}
	removed := must(client.Remove(ctx, key, timecache.ReturnPrevious))(t)
	if !removed.Removed || string(removed.Previous.Value) != "2" || removed.Previous.Key != key {
		t.Errorf("%+v", removed)
	}
	equal(t, "a second remove", must(client.Remove(ctx, key))(t), timecache.RemoveResult{})
	if _, found, err := client.Get(ctx, key); found || err != nil {
		t.Error(found, err)
	}
}

func TestAppendCombineGather(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	ctx := t.Context()
	appended := must(client.Append(ctx, "log", []byte("ab"), timecache.IfAbsent))(t)
	equal(t, "append", appended, timecache.AppendResult{Version: appended.Version, ValueBytes: 2, Created: true})
	appended = must(client.Append(ctx, "log", []byte("c"), timecache.IfVersion(appended.Version)))(t)
	equal(t, "append", appended, timecache.AppendResult{Version: appended.Version, ValueBytes: 3})

	combined := must(client.Combine(ctx, "sum", timecache.Add(-3), timecache.Initial(10)))(t)
	equal(t, "add", combined, timecache.CombineResult{Result: 7, Version: combined.Version, Created: true})
	combined = must(client.Combine(ctx, "sum", timecache.Xor(7), timecache.RemoveIfZero))(t)
	equal(t, "xor", combined, timecache.CombineResult{Removed: true})
	_, err := client.Combine(ctx, "log", timecache.Add(1))
	refused(t, err, codes.FailedPrecondition, timecache.NotANumber)

	both := timecache.PartNames("right", "left")
	first := must(client.Gather(ctx, "row", "left", []byte("l"), both))(t)
	equal(t, "gather", first, timecache.GatherResult{Version: first.Version, Count: 1})
	if again := must(client.Gather(ctx, "row", "left", []byte("l"), both))(t); !again.Duplicate {
		t.Errorf("a part that comes twice: %+v", again)
	}
	_, err = client.Gather(ctx, "row", "left", []byte("other"), both)
	refused(t, err, codes.AlreadyExists, timecache.PartExists)
	_, err = client.Gather(ctx, "row", "right", nil, timecache.PartCount(2))
	refused(t, err, codes.FailedPrecondition, timecache.GatherMismatch)
	entry, _, err := client.Get(ctx, "row")
	parts := timecache.GatheredParts{Parts: []timecache.Part{{Name: "left", Value: []byte("l")}},
		Expected: timecache.Expectation{Names: []string{"left", "right"}}}
	equal(t, "parts in an entry", entry.Parts, &parts)
	if err != nil {
		t.Error(err)
	}
	last := must(client.Gather(ctx, "row", "right", []byte("r"), both))(t)
	parts.Parts = append(parts.Parts, timecache.Part{Name: "right", Value: []byte("r")})
	equal(t, "all parts", last, timecache.GatherResult{Parts: &parts, Count: 2})
}

func TestJSON(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	type basket struct{ Items []string }
	must(client.PutJSON(t.Context(), "b", basket{[]string{"tea"}}))(t)
	entry, _, _ := client.Get(t.Context(), "b")
	var got basket
	if err := entry.JSON(&got); err != nil || !slices.Equal(got.Items, []string{"tea"}) {
		t.Error(got, err)
	}
	if _, err := client.PutJSON(t.Context(), "b", make(chan int)); err == nil {
		t.Error("a channel is no JSON")
	}
}

func TestLargeValues(t *testing.T) {
	client, clock := virtual(t, timecache.NamespaceOptions{MaxValueBytes: new(uint32(16 << 20)), TTL: new(time.Second),
		EventRetentionBytes: new(uint64(256 << 20))})
	ctx := t.Context()
	value := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	must(client.Put(ctx, "large", value))(t)
	entry, _, err := client.Get(ctx, "large")
	if err != nil || !bytes.Equal(entry.Value, value) {
		t.Error(len(entry.Value), err)
	}
	results := must(client.Execute(ctx, []timecache.Operation{timecache.GetOperation("large")}))(t)
	if results[0].Err != nil || !bytes.Equal(results[0].Entry.Value, value) {
		t.Error(results[0].Err)
	}
	for entry, err := range client.Scan(ctx) {
		if err != nil || !bytes.Equal(entry.Value, value) {
			t.Error(len(entry.Value), err)
		}
	}
	must(clock.Advance(ctx, 2*time.Second))(t)
	for batch, err := range client.Watch(ctx, timecache.WatchOptions{Start: timecache.FromEarliest}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Events) > 0 {
			equal(t, "the event's value", bytes.Equal(batch.Events[0].Value, value), true)
			break
		}
	}
}

func TestScan(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	ctx := t.Context()
	var batch []timecache.Operation
	for i := range 2500 {
		batch = append(batch, timecache.PutOperation(fmt.Sprintf("%d/%d", i%2, i), []byte("v")))
	}
	must(client.Execute(ctx, batch))(t)
	seen := map[string]int{}
	for entry, err := range client.Scan(ctx, timecache.Prefix("1/"), timecache.KeysOnly) {
		if err != nil {
			t.Fatal(err)
		}
		seen[entry.Key]++
		if len(entry.Value) != 0 || !strings.HasPrefix(entry.Key, "1/") {
			t.Fatalf("%+v", entry)
		}
	}
	equal(t, "keys", len(seen), 1250)
	count := 0
	for range client.Scan(ctx) {
		if count++; count == 3 {
			break
		}
	}
	equal(t, "entries before a break", count, 3)
	for _, err := range client.In("absent").Scan(ctx) {
		refused(t, err, codes.NotFound, timecache.NamespaceNotFound)
		count = 0
	}
	equal(t, "a scan that fails says so", count, 0)
}

func TestExecute(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	ctx := t.Context()
	results := must(client.Execute(ctx, []timecache.Operation{
		timecache.PutOperation("a", []byte("1")),
		timecache.PutOperation("a", []byte("2"), timecache.IfAbsent),
		timecache.GetOperation("a"),
		timecache.AppendOperation("a", []byte("0")),
		timecache.CombineOperation("a", timecache.Add(5)),
		timecache.ContainsOperation("a"),
		timecache.TouchOperation("a"),
		timecache.RemoveOperation("a", timecache.ReturnPrevious),
		timecache.GatherOperation("g", "p", []byte("v"), timecache.PartCount(1)),
		timecache.GetOperation("a"),
	}))(t)
	refused(t, results[1].Err, codes.FailedPrecondition, timecache.KeyExists)
	if got := results[2]; !got.Found || got.Entry.Key != "a" || string(got.Entry.Value) != "1" {
		t.Errorf("%+v", got)
	}
	equal(t, "length", results[3].Number, 2)
	equal(t, "sum", results[4].Number, 15)
	if !results[5].Found || !results[6].Found || results[6].Version != results[4].Version {
		t.Errorf("%+v", results)
	}
	equal(t, "removed", string(results[7].Entry.Value), "15")
	equal(t, "gathered", results[8].Parts.Parts, []timecache.Part{{Name: "p", Value: []byte("v")}})
	equal(t, "a miss", results[9], timecache.Result{})

	_, err := client.Execute(ctx, []timecache.Operation{timecache.GetOperation("a"), timecache.PutOperation("", nil)})
	if err != nil {
		refused(t, err, codes.InvalidArgument, timecache.InvalidField)
	}
	_, err = client.Execute(ctx, []timecache.Operation{timecache.GetOperation("a", timecache.RequestID("x"))})
	refused(t, err, codes.InvalidArgument, "")
	if results, err := client.Execute(ctx, nil); results != nil || err != nil {
		t.Error(results, err)
	}
}

func TestPipeline(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{OperationsInFlight: 1000})
	const count = 20_000
	next := 0
	for i := range count {
		err := pipeline.Add(timecache.CombineOperation("n", timecache.Add(1)), func(result timecache.Result) {
			if next++; result.Err != nil || result.Number != int64(next) {
				t.Errorf("result %d: %+v", next, result)
			}
		})
		if err != nil {
			t.Fatal(i, err)
		}
	}
	if err := pipeline.Wait(); err != nil || next != count {
		t.Fatal(err, next)
	}
	result := pipeline.Do(t.Context(), timecache.GetOperation("n"))
	if result.Err != nil || string(result.Entry.Value) != fmt.Sprint(count) {
		t.Errorf("%+v", result)
	}
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
	err := pipeline.Add(timecache.GetOperation("n"), nil)
	refused(t, err, codes.FailedPrecondition, "")

	pipeline = client.In("absent").Pipeline(t.Context(), timecache.PipelineOptions{}, timecache.RequestID("my-id"))
	refused(t, pipeline.Do(t.Context(), timecache.GetOperation("n")).Err, codes.NotFound, timecache.NamespaceNotFound)
	err = pipeline.Close()
	refused(t, err, codes.NotFound, timecache.NamespaceNotFound)
	var failure *timecache.Error
	errors.As(err, &failure)
	equal(t, "request id", failure.RequestID, "my-id")
}

// A batch never becomes more than a request may have, whatever is asked for.
func TestPipelineOfLargeBatches(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	pipeline := client.Pipeline(t.Context(), timecache.PipelineOptions{BatchBytes: 64 << 20, BytesInFlight: 64 << 20})
	value := make([]byte, 1<<20)
	for i := range 20 {
		err := pipeline.Add(timecache.PutOperation(fmt.Sprint(i), value), func(result timecache.Result) {
			if result.Err != nil {
				t.Error(i, result.Err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := pipeline.Close(); err != nil {
		t.Error(err)
	}
	equal(t, "entries", must(client.Size(t.Context()))(t).Entries, 20)
}

// Do does not wait for room beyond its context.
func TestPipelineDoEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pipeline := serve(t, &flaky{}, timecache.Options{}).Pipeline(ctx, timecache.PipelineOptions{OperationsInFlight: 1})
	if err := pipeline.Add(timecache.GetOperation("k"), nil); err != nil {
		t.Fatal(err)
	}
	one, end := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, end)
	if err := pipeline.Do(one, timecache.GetOperation("k")).Err; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	cancel()
	if err := pipeline.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What a pipeline takes is told once, also when its server dies or its context ends.
func TestPipelineEnds(t *testing.T) {
	for name, end := range map[string]func(*timecachetest.Server, context.CancelFunc){
		"kill":   func(server *timecachetest.Server, _ context.CancelFunc) { server.Kill() },
		"cancel": func(_ *timecachetest.Server, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			server := timecachetest.Start(t, "--virtual-clock")
			ctx, cancel := context.WithCancel(t.Context())
			pipeline := server.Client(timecache.Options{}).Pipeline(ctx, timecache.PipelineOptions{OperationsInFlight: 50})
			taken, told, failed := 0, 0, 0
			for {
				err := pipeline.Add(timecache.PutOperation("k", []byte("v")), func(result timecache.Result) {
					if told++; result.Err != nil {
						failed++
					}
				})
				if err != nil {
					break
				}
				if taken++; taken == 500 {
					end(server, cancel)
				}
			}
			err := pipeline.Close()
			if err == nil || told != taken {
				t.Errorf("%d operations were taken, %d told, %d of them failed: %v", taken, told, failed, err)
			}
			equal(t, "cancelled", errors.Is(err, context.Canceled), name == "cancel")
			cancel()
		})
	}
}

func TestContexts(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := client.Get(ctx, "k")
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err = client.Put(ctx, "k", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	refused(t, err, codes.DeadlineExceeded, "")
}

// What the server has answered is told, also where the context has ended since.
func TestAnswerBeforeACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, &flaky{fail: []error{status.Error(codes.FailedPrecondition, "no")}}, timecache.Options{
		DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
			request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			defer cancel()
			return invoke(ctx, method, request, response, conn, options...)
		})}})
	_, err := client.Put(ctx, "k", nil)
	refused(t, err, codes.FailedPrecondition, "")
}

// Close ends what is under way, and may come twice.
func TestClose(t *testing.T) {
	server := timecachetest.Start(t)
	client := must(timecache.NewClient(server.Address, timecache.Options{}))(t)
	watching := make(chan bool, 1)
	ends := make(chan error, 3)
	go func() {
		for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
			if err != nil {
				ends <- err
				return
			}
			watching <- true
		}
	}()
	worker := client.Worker("g", nil, timecache.WorkerOptions{})
	go func() { ends <- worker.Run(t.Context()) }()
	receive(t, watching)
	joined(t, client, "g")
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		code := status.Code(receive(t, ends))
		equal(t, "an end", code == codes.Unavailable || code == codes.Canceled, true)
	}
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Canceled, "")
}

// What has ended leaves no goroutine behind.
func TestNoGoroutineIsLeft(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	before := runtime.NumGoroutine()
	for range 5 {
		client := must(timecache.NewClient(server.Address, timecache.Options{}))(t)
		must(client.Put(t.Context(), "k", []byte("v")))(t)
		for range client.Scan(t.Context()) {
			break
		}
		for range client.Watch(t.Context(), timecache.WatchOptions{Reconnect: timecache.Reconnect{MaxSilence: time.Hour}}) {
			break
		}
		next, stop := iter.Pull2(client.WatchExpiring(t.Context(), time.Second, timecache.ExpiringOptions{}))
		next()
		stop()
		closed := client.Pipeline(t.Context(), timecache.PipelineOptions{})
		if err := closed.Do(t.Context(), timecache.GetOperation("k")).Err; err != nil {
			t.Error(err)
		}
		if err := closed.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		client.Pipeline(ctx, timecache.PipelineOptions{}).Do(ctx, timecache.GetOperation("k"))
		end := make(chan error, 1)
		go func() { end <- client.Worker("g", nil, timecache.WorkerOptions{}).Run(ctx) }()
		joined(t, client, "g")
		cancel()
		if err := receive(t, end); err != nil {
			t.Error(err)
		}
		client.Close()
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before })
}

// An address that never leads to a server is told at once.
func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{"127.0.0.1:7171": true, "[::1]:7171": true, "cache:7171": true,
		"unix:/run/timecached": true, "unix-abstract:t": true, "dns:///cache:7171": true, "passthrough:///cache:7171": true,
		"": false, "cache": false, "127.0.0.1": false, "::1": false, "cache:": false, "http://cache:7171": false,
		"https://cache:7171": false} {
		client, err := timecache.NewClient(address, timecache.Options{})
		if equal(t, address, err == nil, good); err != nil {
			refused(t, err, codes.InvalidArgument, "")
			continue
		}
		client.Close()
	}
}

// A host without an address is named.
func TestUnknownHost(t *testing.T) {
	builder := manual.NewBuilderWithScheme("test")
	builder.InitialState(resolver.State{})
	client := must(timecache.NewClient("test:///no-such-host:7171", timecache.Options{
		DialOptions: []grpc.DialOption{grpc.WithResolvers(builder)}}))(t)
	defer client.Close()
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Unavailable, "")
	errs := []error{err}
	for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
		errs = append(errs, err)
	}
	for _, err := range errs {
		if strings.Count(err.Error(), "no-such-host") != 1 {
			t.Error(err)
		}
	}
}

func TestNoServer(t *testing.T) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener.Close()
	client := must(timecache.NewClient(listener.Addr().String(), timecache.Options{}))(t)
	defer client.Close()
	_, _, err := client.Get(t.Context(), "k")
	refused(t, err, codes.Unavailable, "")
	for _, err := range client.Watch(t.Context(), timecache.WatchOptions{}) {
		refused(t, err, codes.Unavailable, "")
	}
	refused(t, client.Worker("g", nil, timecache.WorkerOptions{}).Run(t.Context()), codes.Unavailable, "")
}

// serve runs a service until the test ends, and makes a client of it.
func serve(t *testing.T, service pb.TimeCacheServiceServer, options timecache.Options) *timecache.Client {
	t.Helper()
	server := grpc.NewServer()
	pb.RegisterTimeCacheServiceServer(server, service)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client := must(timecache.NewClient(listener.Addr().String(), options))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// flaky fails the first calls, and remembers the metadata of all. It answers no pipeline.
type flaky struct {
	pb.UnimplementedTimeCacheServiceServer
	mu    sync.Mutex
	fail  []error
	calls []metadata.MD
	limit time.Duration
}

func (f *flaky) called(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	f.calls = append(f.calls, md)
	if deadline, has := ctx.Deadline(); has {
		f.limit = time.Until(deadline)
	}
	if len(f.calls) <= len(f.fail) {
		return f.fail[len(f.calls)-1]
	}
	return nil
}

func (f *flaky) Get(ctx context.Context, _ *pb.GetRequest) (*pb.GetResponse, error) {
	return &pb.GetResponse{}, f.called(ctx)
}

func (f *flaky) Put(ctx context.Context, _ *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{}, f.called(ctx)
}

func (f *flaky) Append(ctx context.Context, _ *pb.AppendRequest) (*pb.AppendResponse, error) {
	return &pb.AppendResponse{}, f.called(ctx)
}

func (f *flaky) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	<-stream.Context().Done()
	return nil
}

func TestRetries(t *testing.T) {
	lost := status.Error(codes.Unavailable, "lost")
	refusal := status.Error(codes.FailedPrecondition, "no")
	get := func(ctx context.Context, c *timecache.Client) error {
		_, _, err := c.Get(ctx, "k", timecache.RequestID("id"), timecache.Traceparent("tp"))
		return err
	}
	put := func(ctx context.Context, c *timecache.Client) error { _, err := c.Put(ctx, "k", nil); return err }
	for _, test := range []struct {
		name  string
		call  func(context.Context, *timecache.Client) error
		fail  []error
		calls int
		code  codes.Code
	}{
		{"a get comes through", get, []error{lost, status.Error(codes.Internal, "stream")}, 3, codes.OK},
		{"a get gives up", get, []error{lost, lost, lost}, 3, codes.Unavailable},
		{"a refusal stands", get, []error{refusal}, 1, codes.FailedPrecondition},
		{"a put is done once", put, []error{lost}, 1, codes.Unavailable},
		{"an append is done once", func(ctx context.Context, c *timecache.Client) error {
			_, err := c.Append(ctx, "k", nil)
			return err
		}, []error{lost}, 1, codes.Unavailable},
		{"a put that is repeatable", func(ctx context.Context, c *timecache.Client) error {
			_, err := c.Put(ctx, "k", nil, timecache.Repeatable())
			return err
		}, []error{lost}, 2, codes.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := &flaky{fail: test.fail}
			client := serve(t, service, timecache.Options{Token: "secret",
				Retry: timecache.RetryPolicy{MinPause: time.Millisecond}})
			err := test.call(t.Context(), client)
			equal(t, "code", status.Code(err), test.code)
			equal(t, "calls", len(service.calls), test.calls)
			equal(t, "token", service.calls[0].Get("authorization"), []string{"Bearer secret"})
			if service.limit <= 0 || service.limit > timecache.DefaultTimeout {
				t.Error("deadline:", service.limit)
			}
			if _, gets := strings.CutPrefix(test.name, "a get"); gets {
				last := service.calls[len(service.calls)-1]
				equal(t, "id", last.Get("x-request-id"), []string{"id"})
				equal(t, "trace", last.Get("traceparent"), []string{"tp"})
			}
		})
	}
}

func TestErrorDetails(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{MaxOperationsPerSecond: new(uint32(1))})
	var err error
	for range 3 {
		if _, err = client.Put(t.Context(), "k", nil, timecache.RequestID("my-id")); err != nil {
			break
		}
	}
	refused(t, err, codes.ResourceExhausted, timecache.MaxOperationRate)
	var failure *timecache.Error
	errors.As(err, &failure)
	if failure.RetryDelay <= 0 || failure.RequestID != "my-id" {
		t.Errorf("%+v", failure)
	}
	if text := err.Error(); !strings.Contains(text, "ResourceExhausted (MAX_OPERATION_RATE)") {
		t.Error(text)
	}
	if errors.Is(err, timecache.KeyExists) || errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Every reason of the protos has its constant.
func TestReasons(t *testing.T) {
	file := must(parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0))(t)
	got := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
			got[strings.Trim(literal.Value, `"`)] = true
		}
		return true
	})
	for number, name := range pb.ErrorReason_name {
		if number != 0 && !got[name] {
			t.Error("no constant for", name)
		}
	}
	equal(t, "reasons", len(got), len(pb.ErrorReason_name)-1)
}

func TestAdministration(t *testing.T) {
	client, _ := virtual(t, timecache.NamespaceOptions{TTL: new(10 * time.Second), NumBuckets: new(uint32(11)),
		MaxEntries: new(uint64(7)), Sliding: new(true)})
	ctx := t.Context()
	namespace := must(client.UpdateNamespace(ctx, "main", timecache.NamespaceOptions{MaxBytes: new(uint64(1 << 20)),
		LimitPolicy: timecache.EvictOldest}, timecache.ToDefault("sliding")))(t)
	o := namespace.Options
	if *o.TTL != 10*time.Second || *o.MaxEntries != 7 || *o.MaxBytes != 1<<20 || *o.Sliding ||
		o.LimitPolicy != timecache.EvictOldest || o.Durability != timecache.Memory || *o.EventRetention != 5*time.Minute ||
		namespace.BucketWidth != time.Second || namespace.Statistics != nil {
		t.Errorf("%+v", namespace)
	}
	_, err := client.CreateNamespace(ctx, "main", timecache.NamespaceOptions{})
	refused(t, err, codes.AlreadyExists, timecache.NamespaceExists)
	must(client.Put(ctx, "k", nil))(t)
	equal(t, "rotated", must(client.RotateNamespace(ctx, "main"))(t), 1)
	described := must(client.GetNamespace(ctx, "main", timecache.IncludeStatistics))(t)
	equal(t, "rotated", described.Statistics.GetRotated(), 1)
	all := must(client.ListNamespaces(ctx))(t)
	equal(t, "namespaces", []string{all[0].Name, all[1].Name}, []string{"default", "main"})

	group := must(client.CreateGroup(ctx, "g", timecache.GroupOptions{AckTimeout: new(time.Minute)}, timecache.FromEarliest))(t)
	if *group.Options.AckTimeout != time.Minute || *group.Options.MaxAttempts != 5 || *group.Options.UnusedTTL != 0 {
		t.Errorf("%+v", group)
	}
	group = must(client.UpdateGroup(ctx, "g", timecache.GroupOptions{MaxAttempts: new(uint32(2))}, timecache.ToDefault("ack_timeout"),
		timecache.RequestID("update")))(t)
	if *group.Options.AckTimeout != 30*time.Second || *group.Options.MaxAttempts != 2 {
		t.Errorf("%+v", group)
	}
	group = must(client.GetGroup(ctx, "g", timecache.IncludeStatistics))(t)
	equal(t, "backlog", group.Statistics.GetBacklog(), 1)
	equal(t, "groups", len(must(client.ListGroups(ctx))(t)), 1)
	if err := client.DeleteGroup(ctx, "g"); err != nil {
		t.Error(err)
	}
	_, err = client.GetGroup(ctx, "g")
	refused(t, err, codes.NotFound, timecache.GroupNotFound)
	if err := client.DeleteNamespace(ctx, "main"); err != nil {
		t.Error(err)
	}
	_, err = client.Size(ctx)
	refused(t, err, codes.NotFound, timecache.NamespaceNotFound)

	server := must(client.GetServer(ctx))(t)
	if server.Version == "" || server.Namespaces.GetUsed() != 1 {
		t.Errorf("%+v", server)
	}
	if err := client.Health(ctx); err != nil {
		t.Error(err)
	}
	_, err = client.BackupJournal(ctx, &bytes.Buffer{})
	refused(t, err, codes.FailedPrecondition, timecache.NoJournal)
}

func TestBackup(t *testing.T) {
	client := timecachetest.Start(t, "--journal", t.TempDir()).Client(timecache.Options{})
	var tar bytes.Buffer
	written := must(client.BackupJournal(t.Context(), &tar))(t)
	if written == 0 || written != int64(tar.Len()) {
		t.Error(written, tar.Len())
	}
}
