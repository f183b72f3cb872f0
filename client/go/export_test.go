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
