package timecache

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	pb "timecached.dev/client/go/gen/timecache/v1"
)

// ChangeKind is what has happened to an entry.
type ChangeKind int

const (
	// ChangeUnknown is one that this client is too old to know.
	ChangeUnknown = ChangeKind(pb.ChangeKind_CHANGE_KIND_UNSPECIFIED)
	// ChangePut: it has a new value, by a Put, Append, Combine, Gather or PutBack.
	ChangePut = ChangeKind(pb.ChangeKind_CHANGE_KIND_PUT)
	// ChangeRenewed: it has a new deadline, and the value that it had.
	ChangeRenewed = ChangeKind(pb.ChangeKind_CHANGE_KIND_RENEWED)
	// ChangeRemoved: it is gone before its time, by a Remove, a Combine that came to 0, or a
	// Gather that is complete.
	ChangeRemoved = ChangeKind(pb.ChangeKind_CHANGE_KIND_REMOVED)
)

// String returns the kind's name, such as "PUT".
func (k ChangeKind) String() string {
	return strings.TrimPrefix(pb.ChangeKind(k).String(), "CHANGE_KIND_")
}

// ChangeEvent is a change of an entry.
type ChangeEvent struct {
	// Kind is what has happened.
	Kind ChangeKind
	// Key has 1 B to 4 KiB.
	Key string
	// Value is, of a ChangePut, the one now. Empty with KeysOnly.
	Value []byte
	// Parts are there in place of a value where the key collects those of a Gather.
	Parts *GatheredParts
	// Version is the entry's now; of a ChangeRemoved the last one.
	Version uint64
	// Deadline is the entry's now. The zero time of a ChangeRemoved.
	Deadline time.Time
	// Time is when it happened, on the server's clock: in this order are the changes of one key,
	// but not those of several.
	Time time.Time
	// OmittedValueBytes is the size of a value that was left out because the change does not fit
	// into a message that the client takes. Otherwise 0.
	OmittedValueBytes uint64
}

// JSON decodes the value into what v points to.
func (e *ChangeEvent) JSON(v any) error { return json.Unmarshal(e.Value, v) }

// ChangeBatch is what has changed in one namespace. The fields are as in [WatchBatch], of
// changes; those of one key are in their order.
type ChangeBatch struct {
	Namespace   string
	Changes     []ChangeEvent
	Watermark   time.Time
	Lost        uint64
	ResumeToken []byte
	Reconnected bool
	LogChanged  bool
	MissedAfter time.Time
}

// WatchChanges tells puts, renewals and removals, as they happen, in one or more namespaces that
// keep them (NamespaceOptions.ChangeRetention): for caches beside the client, indexes, audits.
// What dies is not among them: see [Client.Watch]. Each change comes once, or is counted in
// Lost. A namespace that keeps none: FailedPrecondition (NoChanges). Changes are in memory
// whatever the namespace's durability: after a restart of the server the first batch is
// LogChanged, and the whole namespace may have to be read. As for the rest, see [Client.Watch];
// resume tokens are those of a ChangeBatch.
func (c *Client) WatchChanges(ctx context.Context, options WatchOptions, call ...CallOption) iter.Seq2[*ChangeBatch, error] {
	w := c.newResumableWatch(ctx, options, call)
	w.resumable(options.Start, func(ctx context.Context, start pb.WatchStart, tokens [][]byte) (stream, error) {
		return opened(c.cache.WatchChanges(ctx, &pb.WatchChangesRequest{Namespaces: w.namespaces, Start: start,
			ResumeTokens: tokens, FailOnLoss: options.FailOnLoss, KeyPrefix: []byte(options.KeyPrefix),
			KeysOnly: options.KeysOnly, HeartbeatInterval: optional(options.Heartbeat), MaxMessageBytes: &w.maxMessageBytes}))
	})
	return func(yield func(*ChangeBatch, error) bool) {
		w.run(func(batch *WatchBatch, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			return yield(&ChangeBatch{Namespace: batch.Namespace, Changes: batch.changes, Watermark: batch.Watermark,
				Lost: batch.Lost, ResumeToken: batch.ResumeToken, Reconnected: batch.Reconnected,
				LogChanged: batch.LogChanged, MissedAfter: batch.MissedAfter}, nil)
		})
	}
}

func toChange(change *pb.ChangeEvent) ChangeEvent {
	kind := ChangeKind(change.Kind)
	if _, known := pb.ChangeKind_name[int32(change.Kind)]; !known {
		kind = ChangeUnknown
	}
	return ChangeEvent{Kind: kind, Key: string(change.Key), Value: change.Value, Parts: toParts(change.Parts),
		Version: change.Version, Deadline: toTime(change.Deadline), Time: toTime(change.Time),
		OmittedValueBytes: change.OmittedValueBytes}
}
