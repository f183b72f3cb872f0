package timecache_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"timecached.dev/client/go"
)

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
