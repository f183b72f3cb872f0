package timecache_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"timecached.dev/client/go"
)

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
		PutTime: time.Unix(0, 0).UTC(), Deadline: time.Unix(5, 0).UTC(), CreateTime: time.Unix(0, 0).UTC(), OwnTTL: 5 * time.Second}
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

// Options of which one would win silently are refused, and nothing is sent.
func TestPreconditionsExcludeEachOther(t *testing.T) {
	service := &flaky{}
	client := serve(t, service, timecache.Options{})
	_, err := client.Put(t.Context(), "k", nil, timecache.IfAbsent, timecache.IfVersion(1))
	refused(t, err, codes.InvalidArgument, "")
	_, err = client.Append(t.Context(), "k", nil, timecache.IfAbsent, timecache.IfPresent)
	refused(t, err, codes.InvalidArgument, "")
	_, err = client.Execute(t.Context(), []timecache.Operation{
		timecache.PutOperation("k", nil, timecache.IfVersion(1), timecache.IfPresent)})
	refused(t, err, codes.InvalidArgument, "")
	equal(t, "calls", len(service.calls), 0)
}

// The server takes one header of a kind: a call's own replaces that of its context.
func TestCallOptionsReplaceMetadataOfTheContext(t *testing.T) {
	service := &flaky{}
	client := serve(t, service, timecache.Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "of-all", "x-other", "1")
	must(client.Put(ctx, "k", nil, timecache.RequestID("of-this")))(t)
	equal(t, "x-request-id", service.calls[0].Get("x-request-id"), []string{"of-this"})
	equal(t, "x-other", service.calls[0].Get("x-other"), []string{"1"})
}
