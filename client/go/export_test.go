package timecache

import (
	"context"
	"time"
)

// What the conformance runner needs to compare with the protos.
var (
	NamespaceOptionsProto = (*NamespaceOptions).proto
	NamespaceOptionsFrom  = toNamespaceOptions
	GroupOptionsProto     = (*GroupOptions).proto
	GroupOptionsFrom      = toGroupOptions
)

// AwaitsAnswer says whether the timeout runs.
func (p *Pipeline) AwaitsAnswer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticking
}

// MaxSilenceOf is the bound of a watch's silence.
func MaxSilenceOf(client *Client, heartbeat, given time.Duration) time.Duration {
	return client.newWatch(context.Background(), nil, heartbeat, Reconnect{MaxSilence: given}, nil).reconnect.MaxSilence
}

// MaxSharedMessages is how many messages of a shared stream are under way at a time.
const MaxSharedMessages = maxSharedMessages

// SharedCalls says how many calls of the client's namespace wait to be sent, and for an answer.
func SharedCalls(client *Client) (queued, sent int) {
	l := client.streams.lane(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream != nil {
		sent = l.stream.waiting
	}
	return len(l.queue), sent
}

// QueuedSettlements says how many calls of Settle wait for a request of the group.
func QueuedSettlements(client *Client, group string) int {
	client.settling.mu.Lock()
	defer client.settling.mu.Unlock()
	return len(client.settling.queues[settledGroup{client.options.Namespace, group}])
}

// PartitionOf is the partition of a key, of so many.
func PartitionOf(key string, partitions int) int { return partitionOf([]byte(key), partitions) }

// KeyOf is an operation's key.
var KeyOf = keyOf

// IsAsking says whether a question for the owners of the client's namespace is under way.
func IsAsking(client *Client) bool { return client.owned.Load().asking.Load() }

// SetOwnersClock replaces the clock by which owners are asked for and left out.
func SetOwnersClock(client *Client, now func() int64) { client.owners.now = now }

// KnownOwners says of how many namespaces owners are known, and how many nodes they name.
func KnownOwners(client *Client) (namespaces, nodes int) {
	client.owners.mu.Lock()
	defer client.owners.mu.Unlock()
	return len(client.owners.namespaces), len(client.owners.nodes)
}

// OwnerOf is where a call on the key would go; empty: to the default node.
func OwnerOf(client *Client, key string) string {
	route := client.enterOwner(GetOperation(key).request)
	if route == nil {
		return ""
	}
	route.leave()
	return route.node.address
}

// OwnerLookup looks for the owner of an operation's key.
func OwnerLookup(client *Client, operation Operation) {
	client.enterOwner(operation.request).leave()
}

// The bounds of what is known of owners.
const (
	MaxOwnedNamespaces = maxOwnedNamespaces
	MaxOwnerNodes      = maxOwnerNodes
)
