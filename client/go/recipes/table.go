package recipes

import (
	"context"
	"slices"
	"time"

	"timecached.dev/client/go"
)

// Table is a set whose members expire, in the client's namespace.
//
//	online := recipes.NewTable(client, "online", recipes.TableOptions{TTL: time.Minute})
//	online.Add(ctx, "alice")
//	who, err := online.List(ctx)
//
// Each member is an entry, NAME/MEMBER, so that no second entry needs updating. No name of a
// table or other structure in a namespace may be another one's name followed by a '/'.
//
// Guarantee: Add, Remove and Contains of one member are atomic, from whatever client. List
// has each member that is in the table during the whole of it exactly once, and others at
// most once. Members expire one by one, each with an event ([Table.MemberOf]).
//
// A call without an answer may have happened. A repeated one has the same effect; only its
// result may be wrong because the first attempt was applied.
//
// Cost: one round trip and O(1) for each call. List scans: O(entries of the namespace), so
// give a table whose listing matters a namespace of its own.
//
// Safe for concurrent use.
type Table struct {
	members
	options []timecache.PutOption
}

// TableOptions are those of a [Table].
type TableOptions struct {
	// TTL is how long a member stays without being added again: 1 ms to the namespace's
	// max_ttl. 0: the namespace's ttl.
	TTL time.Duration
}

// NewTable makes it; no call.
func NewTable(client *timecache.Client, name string, options TableOptions) *Table {
	t := &Table{members{client, name + "/"}, []timecache.PutOption{timecache.ReturnPrevious}}
	if options.TTL != 0 {
		t.options = append(t.options, timecache.TTL(options.TTL))
	}
	return t
}

// Add adds a member, or renews its time to live, and returns whether it is new.
func (t *Table) Add(ctx context.Context, member string) (isNew bool, err error) {
	put, err := t.client.Put(ctx, t.prefix+member, nil, t.options...)
	return err == nil && put.Previous == nil, err
}

// Remove returns whether the member was in the table.
func (t *Table) Remove(ctx context.Context, member string) (removed bool, err error) {
	result, err := t.client.Remove(ctx, t.prefix+member)
	return result.Removed, err
}

// Contains says whether the member is in the table. Never renews.
func (t *Table) Contains(ctx context.Context, member string) (bool, error) {
	return t.client.Contains(ctx, t.prefix+member)
}

// List returns all members, in bytewise order.
func (t *Table) List(ctx context.Context) (all []string, err error) {
	for entry, err := range t.client.Scan(ctx, timecache.Prefix(t.prefix), timecache.KeysOnly) {
		if err != nil {
			return nil, err
		}
		all = append(all, entry.Key[len(t.prefix):])
	}
	slices.Sort(all)
	return all, nil
}

// MemberOf returns the member whose entry has this key, as of an ExpiredEvent; is says
// whether the key is of this table.
func (t *Table) MemberOf(key string) (member string, is bool) { return t.of(key) }
