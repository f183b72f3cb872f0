package recipes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	"timecached.dev/client/go/recipes"
	"timecached.dev/client/go/timecachetest"
)

// What the scenarios of tests/conformance/recipes leave open: waiting, and what goes wrong.

func start(t *testing.T) (*timecache.Client, *timecachetest.Clock) {
	t.Helper()
	client := timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{})
	return client, timecachetest.NewClock(client)
}

// wait takes what comes soon, or the test has failed.
func wait[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing within a minute")
	}
	return value
}

// acquired is TryAcquire of a lock that is free.
func acquired(t *testing.T, lock *recipes.Lock) uint64 {
	t.Helper()
	token, err := lock.TryAcquire(t.Context())
	if token == 0 || err != nil {
		t.Fatal("not acquired:", token, err)
	}
	return token
}

// acquiring acquires in a goroutine.
func acquiring(t *testing.T, lock *recipes.Lock) <-chan uint64 {
	tokens := make(chan uint64, 1)
	go func() {
		token, err := lock.Acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		tokens <- token
	}()
	return tokens
}

func TestAWaiterGetsTheLockWhenTheLeaseEnds(t *testing.T) {
	client, clock := start(t)
	first := acquired(t, recipes.NewLock(client, "lock", recipes.LockOptions{}))
	tokens := acquiring(t, recipes.NewLock(client, "lock", recipes.LockOptions{Recheck: time.Hour}))
	if _, err := clock.Advance(t.Context(), 11*time.Second); err != nil {
		t.Fatal(err)
	}
	if second := wait(t, tokens); second <= first {
		t.Error("got", second, "after", first)
	}
}

func TestAWaiterLooksAgainWhereNoEventComes(t *testing.T) {
	client, _ := start(t)
	acquired(t, recipes.NewLock(client, "lock", recipes.LockOptions{}))
	tokens := acquiring(t, recipes.NewLock(client, "lock", recipes.LockOptions{Recheck: time.Millisecond}))
	if _, err := client.Remove(t.Context(), "lock"); err != nil {
		t.Fatal(err)
	}
	wait(t, tokens)
}

func TestAWaiterGivesUp(t *testing.T) {
	client, _ := start(t)
	acquired(t, recipes.NewLock(client, "lock", recipes.LockOptions{}))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := recipes.NewLock(client, "lock", recipes.LockOptions{}).Acquire(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestALeaseThatIsOverIsLost(t *testing.T) {
	client, _ := start(t)
	lost := make(chan bool, 9)
	lock := recipes.NewLock(client, "lock", recipes.LockOptions{TTL: 50 * time.Millisecond, OnLost: func() { lost <- true }})
	token := acquired(t, lock)
	wait(t, lost)
	if lock.Token() != 0 || lock.Remaining() != 0 {
		t.Error("got", lock.Token(), lock.Remaining())
	}
	if held, err := lock.Renew(t.Context()); held || err != nil {
		t.Error("renewed", err)
	}
	// The server's clock stands: it is still this owner's.
	if other, err := recipes.NewLock(client, "lock", recipes.LockOptions{}).TryAcquire(t.Context()); other != 0 || err != nil {
		t.Error("another has it", err)
	}
	if again := acquired(t, lock); again != token {
		t.Error("got", again, "after", token)
	}
	wait(t, lost)
}

func TestACallFindsTheLeaseLost(t *testing.T) {
	client, clock := start(t)
	lost := 0
	lock := recipes.NewLock(client, "lock", recipes.LockOptions{OnLost: func() { lost++ }})
	acquired(t, lock)
	if left := lock.Remaining(); left <= 0 || left > 10*time.Second {
		t.Error("remaining:", left)
	}
	if _, err := clock.Advance(t.Context(), 11*time.Second); err != nil {
		t.Fatal(err)
	}
	acquired(t, recipes.NewLock(client, "lock", recipes.LockOptions{}))
	if held, err := lock.Renew(t.Context()); held || err != nil {
		t.Error("renewed", err)
	}
	if held, err := lock.Release(t.Context()); held || err != nil || lost != 1 {
		t.Error(held, err, lost)
	}
}

func TestAReleasedLeaseIsNotLost(t *testing.T) {
	client, _ := start(t)
	lost := make(chan string, 9)
	report := func(who string) recipes.LockOptions {
		return recipes.LockOptions{TTL: 100 * time.Millisecond, OnLost: func() { lost <- who }}
	}
	lock := recipes.NewLock(client, "released", report("released"))
	acquired(t, lock)
	// Where this machine is slow, its time may be over before it is released.
	released, err := lock.Release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Begins later, so that it ends later.
	acquired(t, recipes.NewLock(client, "kept", report("kept")))
	for who := wait(t, lost); who != "kept"; who = wait(t, lost) {
		if released {
			t.Fatal("a lease that was released is lost")
		}
	}
}

// forgetful makes a client that does not get the answer to the next call of a method, once
// it is done.
func forgetful(t *testing.T) (client *timecache.Client, clock *timecachetest.Clock, lose *string) {
	t.Helper()
	lose = new(string)
	client = timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{
		Batching: new(false), DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(func(ctx context.Context, method string,
			request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			err := invoke(ctx, method, request, reply, conn, options...)
			if err == nil && *lose != "" && strings.HasSuffix(method, *lose) {
				*lose = ""
				return status.Error(codes.DeadlineExceeded, "lost")
			}
			return err
		})}})
	return client, timecachetest.NewClock(client), lose
}

func TestAnAcquisitionWithoutAnAnswerIsTakenOver(t *testing.T) {
	client, clock, lose := forgetful(t)
	lock := recipes.NewLock(client, "lock", recipes.LockOptions{})
	other := recipes.NewLock(client, "lock", recipes.LockOptions{})
	*lose = "Put"
	if token, err := lock.TryAcquire(t.Context()); token != 0 || status.Code(err) != codes.DeadlineExceeded {
		t.Fatal(token, err)
	}
	for range 2 {
		if token, err := other.TryAcquire(t.Context()); token != 0 || err != nil {
			t.Error(token, err)
		}
		// With a fresh time to live: who takes it over does not know when it began.
		if _, err := clock.Advance(t.Context(), 9*time.Second); err != nil {
			t.Fatal(err)
		}
		token := acquired(t, lock)
		entry, _, err := client.Get(t.Context(), "lock")
		if err != nil || entry.Version != token {
			t.Error(entry, err)
		}
	}
}

func TestAReleaseWithoutAnAnswerIsRepeated(t *testing.T) {
	client, _, lose := forgetful(t)
	lost := 0
	lock := recipes.NewLock(client, "lock", recipes.LockOptions{OnLost: func() { lost++ }})
	token := acquired(t, lock)
	*lose = "Put"
	if _, err := lock.Release(t.Context()); status.Code(err) != codes.DeadlineExceeded || lock.Token() != token {
		t.Fatal(err, lock.Token())
	}
	other := recipes.NewLock(client, "lock", recipes.LockOptions{})
	acquired(t, other)
	if held, err := lock.Release(t.Context()); held || err != nil || lock.Token() != 0 || lost != 0 {
		t.Error(held, err, lock.Token(), lost)
	}
	if held, err := other.Renew(t.Context()); !held || err != nil {
		t.Error(held, err)
	}
}

func TestWhatIsAddedAgainCountsOnce(t *testing.T) {
	client, _, lose := forgetful(t)
	array := recipes.NewArray(client, "array", recipes.ArrayOptions{})
	item := recipes.Item{ID: recipes.NewID(), Value: []byte("once")}
	*lose = "Append"
	if err := array.AddItem(t.Context(), item); status.Code(err) != codes.DeadlineExceeded {
		t.Fatal(err)
	}
	if err := array.AddItem(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	contents, err := array.Read(t.Context())
	if err != nil || len(contents.Items) != 1 || contents.Items[0].ID != item.ID {
		t.Error(contents, err)
	}
}

func TestWorkThatFailsLeavesItsClaim(t *testing.T) {
	client, clock := start(t)
	options := recipes.AnswerOptions{WorkTime: 5 * time.Second, Remembered: time.Minute}
	broken := errors.New("broken")
	answer := func(err error) ([]byte, error) {
		return recipes.AnswerOnce(t.Context(), client, "r", options,
			func(context.Context) ([]byte, error) { return []byte("done"), err })
	}
	if _, err := answer(broken); err != broken {
		t.Error(err)
	}
	if _, err := answer(nil); status.Code(err) != codes.Aborted {
		t.Error(err)
	}
	if _, err := clock.Advance(t.Context(), 6*time.Second); err != nil {
		t.Fatal(err)
	}
	if got, err := answer(nil); string(got) != "done" || err != nil {
		t.Error(string(got), err)
	}
}

func TestWorkThatTakesTooLongSaysSo(t *testing.T) {
	client, clock := start(t)
	options := recipes.AnswerOptions{WorkTime: 5 * time.Second, Remembered: time.Minute}
	_, err := recipes.AnswerOnce(t.Context(), client, "r", options, func(ctx context.Context) ([]byte, error) {
		_, err := clock.Advance(ctx, 6*time.Second)
		return nil, err
	})
	if !errors.Is(err, timecache.KeyNotFound) {
		t.Error(err)
	}
}

func TestChangesOfAnArrayAtTheSameTimeAreAllKept(t *testing.T) {
	client, _ := start(t)
	array := recipes.NewArray(client, "array", recipes.ArrayOptions{})
	const threads, each = 4, 30
	done := make(chan error, threads)
	for range threads {
		go func() {
			var err error
			for i := range each {
				id, failure := array.Add(t.Context(), []byte{byte(i)})
				if i%3 == 0 {
					failure = errors.Join(failure, array.Remove(t.Context(), id))
				}
				err = errors.Join(err, failure)
			}
			done <- err
		}()
	}
	for running := threads; running > 0; {
		select {
		case err := <-done:
			running--
			if err != nil {
				t.Error(err)
			}
		default:
			if err := array.Compact(t.Context()); err != nil && status.Code(err) != codes.Aborted {
				t.Error(err)
			}
		}
	}
	contents, err := array.Read(t.Context())
	if err != nil || len(contents.Items) != threads*each*2/3 {
		t.Error(len(contents.Items), err)
	}
}

func TestAFullArrayIsCompacted(t *testing.T) {
	client, _ := start(t)
	options := timecache.NamespaceOptions{MaxValueBytes: new(uint32(64))}
	if _, err := client.CreateNamespace(t.Context(), "small", options); err != nil {
		t.Fatal(err)
	}
	array := recipes.NewArray(client.In("small"), "array", recipes.ArrayOptions{})
	for range 20 {
		id, err := array.Add(t.Context(), []byte("0123456789"))
		if err == nil {
			err = array.Remove(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		_, err := array.Add(t.Context(), []byte("0123456789"))
		if (i < 2) != (err == nil) {
			t.Error(i, err)
		}
	}
}

func TestAnArrayIsUpdatedAsAWhole(t *testing.T) {
	client, _ := start(t)
	array := recipes.NewArray(client, "array", recipes.ArrayOptions{})
	changes := 0
	err := array.Update(t.Context(), func(items []recipes.Item) []recipes.Item {
		if changes++; changes == 1 {
			if _, err := array.Add(t.Context(), []byte("from another")); err != nil {
				t.Error(err)
			}
		}
		return append(items, recipes.Item{ID: recipes.NewID(), Value: []byte("last")})
	})
	contents, failure := array.Read(t.Context())
	if err != nil || failure != nil || changes != 2 || len(contents.Items) != 2 {
		t.Error(err, failure, changes, contents)
	}
}

func TestTuplesAndAcknowledgementsInABatch(t *testing.T) {
	client, _ := start(t)
	join := recipes.NewJoin(client, "people", recipes.JoinOptions{Sources: []string{"gender", "age"}})
	acker := recipes.NewAcker(client, "acks", recipes.AckerOptions{})
	id := recipes.NewTupleID()
	results, err := client.Execute(t.Context(), []timecache.Operation{
		join.Operation("7", "age", []byte("42")), join.Operation("7", "gender", []byte("female")),
		join.Operation("8", "height", nil), acker.TrackOperation("m", id), acker.AckOperation("m", id)})
	if err != nil {
		t.Fatal(err)
	}
	if row, err := join.Row("7", results[0]); row != nil || err != nil {
		t.Error(row, err)
	}
	row, err := join.Row("7", results[1])
	if err != nil || row == nil || row.ID != "7" || string(row.Tuples[0]) != "female" || string(row.Tuples[1]) != "42" {
		t.Error(row, err)
	}
	if row, err := join.Row("8", results[2]); row != nil || status.Code(err) != codes.InvalidArgument {
		t.Error(row, err)
	}
	if results[3].Removed || !results[4].Removed {
		t.Error(results)
	}
}

func TestALogIsReadOverSeveralResponses(t *testing.T) {
	client, _ := start(t)
	log := recipes.NewEventLog(client, "log", recipes.EventLogOptions{Chunk: time.Second, Chunks: 20})
	begin := time.Unix(0, 0)
	position := log.PositionAt(begin)
	for second := range 8 {
		if _, err := log.Append(t.Context(), begin.Add(time.Duration(second)*time.Second), make([]byte, 900_000)); err != nil {
			t.Fatal(err)
		}
	}
	end := begin.Add(8 * time.Second)
	page, err := log.Read(t.Context(), begin, end)
	if err != nil || len(page.Events) != 8 {
		t.Error(len(page.Events), err)
	}
	for _, want := range []int{8, 0} {
		page, position, err = log.ReadNew(t.Context(), position, end)
		if err != nil || len(page.Events) != want {
			t.Error(len(page.Events), err)
		}
	}
}
