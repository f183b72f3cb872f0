package recipes

import (
	"context"
	"strconv"
	"time"

	"timecached.dev/client/go"
)

// untracked is in the number of a tree that is not tracked yet, or any more. A missing entry
// counts as this; Track takes it away.
const untracked = 1

// AckerOptions are those of an [Acker].
type AckerOptions struct {
	// TTL is how long a tree may take: 1 ms to the namespace's max_ttl. 0: the namespace's
	// ttl.
	TTL time.Duration
}

// Acker tracks whether all work derived from a message was done in time, as trees of tuples,
// each by its root's name: Storm's acker.
//
//	acker := recipes.NewAcker(client, "acks", recipes.AckerOptions{})
//	first := recipes.NewTupleID()
//	acker.Track(ctx, "message-7", first)          // The spout, when it emits.
//	a := recipes.NewTupleID()
//	acker.Ack(ctx, "message-7", first, a)         // A bolt that emitted a for it.
//	done, err := acker.Ack(ctx, "message-7", a)   // The last one: true.
//
// One number for a tree, in the entry NAME/ROOT of the client's namespace: the xor of the ids
// of all tuples that were emitted or acknowledged, which is 0 when each has been both. Tuples
// may be acknowledged in any order, also before Track.
//
// Guarantee: a tracked tree ends in one of three ways. It is done: true is returned to
// exactly one call. It has failed by time-out: its entry expires, exactly once, at most a
// bucket width after its ttl ([Acker.FailedRoot]). Or Fail has removed it. A lost or late
// acknowledgement fails its own tree, never another; one after the end creates an entry
// without a tree, which FailedRoot ignores. Ids are random: the probability that a tree
// counts as done by chance is 2^-63.
//
// A call without an answer may have happened. Track: emit under a new root; the old one, if
// it is there, fails. Ack: do not repeat it, since twice is not at all. The tree is done,
// though no caller received that, or fails. A root that was tracked, and whose failure has
// not been delivered when the watch's watermark is beyond its time, is done.
//
// Cost: one round trip and O(1) for a call, a share of one in a pipeline or Execute by the
// operations; about 40 B for a tree beside its name.
//
// Safe for concurrent use.
type Acker struct {
	members
	options []timecache.CombineOption
}

// NewAcker makes it; no call.
func NewAcker(client *timecache.Client, name string, options AckerOptions) *Acker {
	a := &Acker{members{client, name + "/"},
		[]timecache.CombineOption{timecache.Initial(untracked), timecache.RemoveIfZero}}
	if options.TTL != 0 {
		a.options = append(a.options, timecache.TTL(options.TTL))
	}
	return a
}

// NewTupleID is the id of a tuple: random, not 0, and even: the lowest bit says whether a tree
// is tracked.
func NewTupleID() uint64 {
	for {
		if id := NewID() &^ untracked; id != 0 {
			return id
		}
	}
}

// Track begins a tree with the tuples that its source emits. Done: all of them are
// acknowledged already. Call it once for each root: do not reuse the name of a root for at
// least twice the ttl.
func (a *Acker) Track(ctx context.Context, root string, emitted ...uint64) (done bool, err error) {
	return a.Ack(ctx, root, untracked, emitted...)
}

// Ack says that a tuple was processed; emitted were derived from it. Done: the tree now is.
func (a *Acker) Ack(ctx context.Context, root string, tuple uint64, emitted ...uint64) (done bool, err error) {
	result, err := a.client.Combine(ctx, a.prefix+root, xor(tuple, emitted), a.options...)
	return result.Removed, err
}

// Fail gives up a tree. Existed: no event follows. Else it is done, or has failed.
func (a *Acker) Fail(ctx context.Context, root string) (existed bool, err error) {
	result, err := a.client.Remove(ctx, a.prefix+root)
	return result.Removed, err
}

// TrackOperation is Track for a pipeline or Execute; Result.Removed is done.
func (a *Acker) TrackOperation(root string, emitted ...uint64) timecache.Operation {
	return a.AckOperation(root, untracked, emitted...)
}

// AckOperation is Ack for a pipeline or Execute; Result.Removed is done.
func (a *Acker) AckOperation(root string, tuple uint64, emitted ...uint64) timecache.Operation {
	return timecache.CombineOperation(a.prefix+root, xor(tuple, emitted), a.options...)
}

// FailedRoot returns the root of the tree whose failure this event of a watch or group
// reports; failed is false for other keys, and for entries of late calls. An eviction or
// rotation fails a tree, too.
func (a *Acker) FailedRoot(event *timecache.ExpiredEvent) (root string, failed bool) {
	number, err := strconv.ParseInt(string(event.Value), 10, 64)
	if err != nil || event.Cause == timecache.CauseExpiring || number&untracked != 0 {
		return "", false
	}
	return a.of(event.Key)
}

func xor(first uint64, more []uint64) timecache.Operand {
	for _, id := range more {
		first ^= id
	}
	return timecache.Xor(int64(first))
}
