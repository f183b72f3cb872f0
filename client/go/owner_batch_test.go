package timecache_test

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
)

// gets has one of each partition, of 16.
func gets() (operations []timecache.Operation) {
	for partition := range 16 {
		operations = append(operations, timecache.GetOperation(keyIn(partition)))
	}
	return operations
}

func TestABatchIsDividedByOwner(t *testing.T) {
	cluster := startSharing(t, 3)
	client := cluster.routed(timecache.Options{})
	results := must(client.Execute(t.Context(), gets()))(t)
	for partition, result := range results {
		equal(t, "error", result.Err, nil)
		equal(t, "value", string(result.Entry.Value), keyIn(partition))
	}
	for i, node := range cluster.nodes {
		keys, requests := node.noted()
		equal(t, "requests", requests, 1)
		for j, key := range keys {
			equal(t, "key", key, keyIn(i+3*j))
		}
	}
}

func TestABatchOfOneOwnerGoesAsItIs(t *testing.T) {
	cluster := startSharing(t, 3)
	client := cluster.routed(timecache.Options{})
	operations := []timecache.Operation{timecache.GetOperation(keyIn(1)), timecache.GetOperation(keyIn(4))}
	must(client.Execute(t.Context(), operations))(t)
	keys, requests := cluster.nodes[1].noted()
	equal(t, "keys", keys, []string{keyIn(1), keyIn(4)})
	equal(t, "requests", requests, 1)
}

func TestAnAtomicBatchGoesToTheOwnerOfItsPartition(t *testing.T) {
	cluster := startSharing(t, 3)
	client := cluster.routed(timecache.Options{})
	tag := "{" + keyIn(1) + "}"
	for node, operations := range map[int][]timecache.Operation{
		1: {timecache.GetOperation("a" + tag), timecache.GetOperation("b" + tag)},
		0: {timecache.GetOperation(keyIn(1)), timecache.GetOperation(keyIn(4))},
	} {
		must(client.Execute(t.Context(), operations, timecache.Atomic))(t)
		keys, requests := cluster.nodes[node].noted()
		equal(t, "keys", len(keys), 2)
		equal(t, "requests", requests, 1)
	}
}

func TestPartsOfOwnersThatAreNotReachedGoToTheDefaultNodeTogether(t *testing.T) {
	cluster := startSharing(t, 2)
	cluster.answer([]string{cluster.nodes[1].address, cluster.nodes[0].address, gone(t), gone(t)}, nil)
	client := cluster.client(timecache.Options{})
	eventually(t, func() bool {
		for i := range 16 {
			if timecache.OwnerOf(client, keyIn(i)) != "" {
				return true
			}
		}
		return false
	})
	for partition, result := range must(client.Execute(t.Context(), gets()))(t) {
		equal(t, "value", string(result.Entry.Value), keyIn(partition))
	}
	for _, node := range cluster.nodes {
		_, requests := node.noted()
		equal(t, "requests", requests, 1)
	}
}

func TestAPartThatIsRefusedGoesToTheDefaultNode(t *testing.T) {
	cluster := startSharing(t, 2)
	client := cluster.routed(timecache.Options{Retry: timecache.RetryPolicy{MaxAttempts: 1}})
	cluster.nodes[1].failWith(notOwner(""))
	for partition, result := range must(client.Execute(t.Context(), gets()))(t) {
		equal(t, "error", result.Err, nil)
		equal(t, "value", string(result.Entry.Value), keyIn(partition))
	}
	_, requests := cluster.nodes[0].noted()
	equal(t, "requests", requests, 2)
}

func TestOperationsOfAPartThatFailsHaveItsError(t *testing.T) {
	cluster := startSharing(t, 2)
	client := cluster.routed(timecache.Options{Retry: timecache.RetryPolicy{MaxAttempts: 1}})
	cluster.nodes[1].failWith(status.Error(codes.Unavailable, "reset"))
	for partition, result := range must(client.Execute(t.Context(), gets()))(t) {
		var failure *timecache.Error
		equal(t, "failed", errors.As(result.Err, &failure) && failure.MaybeApplied, partition%2 == 1)
	}
	cluster.nodes[0].failWith(status.Error(codes.ResourceExhausted, "slowly"))
	_, err := client.In("other").Execute(t.Context(), gets())
	refused(t, err, codes.ResourceExhausted, "")
}

func TestABatchThatNoServerTakesIsNotDivided(t *testing.T) {
	cluster := startSharing(t, 2)
	client := cluster.routed(timecache.Options{})
	var operations []timecache.Operation
	for len(operations) <= timecache.MaxOperations {
		operations = append(operations, gets()...)
	}
	client.Execute(t.Context(), operations)
	large := make([]byte, timecache.MaxRequestBytes/2)
	client.Execute(t.Context(), []timecache.Operation{timecache.PutOperation(keyIn(0), large), timecache.PutOperation(keyIn(1), large)})
	_, requests := cluster.nodes[1].noted()
	equal(t, "at the other owner", requests, 0)
}
