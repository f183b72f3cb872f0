package recipes

import (
	"context"
	"strconv"
	"strings"
	"time"

	"timecached.dev/client/go"
)

// Joined is a row of a [Join].
type Joined struct {
	ID string
	// Tuples has one of each source, in the order of JoinOptions.Sources.
	Tuples [][]byte
}

// IncompleteJoin is a row that was not complete in time.
type IncompleteJoin struct {
	ID string
	// Tuples are those that came; nil for a source that has none. An empty one is not nil.
	Tuples [][]byte
}

// JoinOptions are those of a [Join].
type JoinOptions struct {
	// Sources are the streams to join: 1 to 1,024 different names of 1 to 256 B. All joins of
	// one name must have the same ones.
	Sources []string
	// TTL is how long an id waits for its last tuple, from its first one on. 0: the
	// namespace's ttl.
	TTL time.Duration
}

// Join joins tuples of several sources that have the same id: Storm's SingleJoinBolt.
//
//	people := recipes.NewJoin(client, "people", recipes.JoinOptions{Sources: []string{"gender", "age"}})
//	row, err := people.Add(ctx, "7", "gender", []byte("female")) // nil yet.
//	row, err = people.Add(ctx, "7", "age", []byte("42"))         // female, 42
//
// The tuples of an id wait in the entry NAME/ID of the client's namespace.
//
// Guarantee: each id ends in exactly one of two ways. It is complete: the row is returned to
// exactly one call, the one that added the last tuple. Or it has failed by time-out: one
// event has the tuples that came ([Join.Incomplete]). A tuple that comes after the end starts
// a new row of the id, which fails alone.
//
// A call without an answer may have happened: add it again. If it completed the row, then the
// row was lost with the answer, and the repetition fails alone, by time-out; so an
// application that must not lose a row keeps its tuples until the row is handled.
//
// Cost: one round trip for a tuple, in a pipeline or Execute by Operation a share of one;
// O(its size) and, for the last one, O(the row's). A waiting row takes its tuples, the names
// of all sources, and about 40 B: use short names.
//
// Safe for concurrent use.
type Join struct {
	members
	sources []string
	options []timecache.GatherOption
}

// NewJoin makes it; no call.
func NewJoin(client *timecache.Client, name string, options JoinOptions) *Join {
	j := &Join{members: members{client, name + "/"}, sources: options.Sources}
	if options.TTL != 0 {
		j.options = append(j.options, timecache.TTL(options.TTL))
	}
	return j
}

// JoinID is an id of several fields: two are equal only if all of their fields are.
func JoinID(fields ...string) string {
	var id strings.Builder
	for _, field := range fields {
		id.WriteString(strconv.Itoa(len(field)) + ":" + field)
	}
	return id.String()
}

// Add returns the row, if this tuple completes it; nil if not. AlreadyExists (PartExists):
// this source has added another tuple for the id, which is kept. The same one again changes
// nothing.
func (j *Join) Add(ctx context.Context, id, source string, tuple []byte) (*Joined, error) {
	gathered, err := j.client.Gather(ctx, j.prefix+id, source, tuple, timecache.PartNames(j.sources...), j.options...)
	return j.row(id, gathered.Parts), err
}

// Operation is Add for a pipeline or Execute; Row is what its result says.
func (j *Join) Operation(id, source string, tuple []byte) timecache.Operation {
	return timecache.GatherOperation(j.prefix+id, source, tuple, timecache.PartNames(j.sources...), j.options...)
}

// Row is what Add would return of the result of an Operation.
func (j *Join) Row(id string, result timecache.Result) (*Joined, error) {
	return j.row(id, result.Parts), result.Err
}

// Incomplete returns the row whose failure this event of a watch or group reports; nil for
// other keys. An eviction or rotation fails a row, too.
func (j *Join) Incomplete(event *timecache.ExpiredEvent) *IncompleteJoin {
	id, is := j.of(event.Key)
	if !is || event.Parts == nil || event.Cause == timecache.CauseExpiring {
		return nil
	}
	return &IncompleteJoin{id, j.sorted(event.Parts)}
}

func (j *Join) row(id string, parts *timecache.GatheredParts) *Joined {
	if parts == nil {
		return nil
	}
	return &Joined{id, j.sorted(parts)}
}

// sorted has the parts in the order of the sources.
func (j *Join) sorted(parts *timecache.GatheredParts) [][]byte {
	tuples := make([][]byte, len(j.sources))
	for i, source := range j.sources {
		for _, part := range parts.Parts {
			if part.Name == source {
				tuples[i] = append([]byte{}, part.Value...)
			}
		}
	}
	return tuples
}
