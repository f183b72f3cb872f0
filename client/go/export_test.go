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
