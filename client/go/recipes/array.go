package recipes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
)

// A record is one of these, the id, and, of what was added, the value's length in four bytes
// and the value. Numbers are little-endian.
const (
	added   = '+'
	removed = '-'
)

// maxRewrites is how often an Update begins anew.
const maxRewrites = 16

// Item is one of an [Array].
type Item struct {
	// ID is unique in the array.
	ID    uint64
	Value []byte
}

// Contents are those of an [Array].
type Contents struct {
	// Items are in the order in which they were added.
	Items []Item
	// Version is the entry's; 0: there is none.
	Version uint64
	// StoredBytes is the entry's size, CompactBytes that after a compaction.
	StoredBytes, CompactBytes int
}

// ArrayOptions are those of an [Array].
type ArrayOptions struct {
	// TTL is the array's own time to live. 0: the namespace's.
	TTL time.Duration
	// KeepDeadline: Add and Update do not renew the time to live: it counts from the
	// creation.
	KeepDeadline bool
}

// Array is a list that is read often and changed by many clients, under one key of the
// client's namespace.
//
//	hosts := recipes.NewArray(client, "hosts", recipes.ArrayOptions{})
//	id, err := hosts.Add(ctx, []byte("10.0.0.7"))
//	all, err := hosts.Read(ctx)
//	err = hosts.Remove(ctx, id)
//
// Add and Remove append their change to the entry, and readers fold the changes: neither
// reads nor rewrites the list, and no lock is needed. Update changes it as a whole, by
// version. It expires as a whole; [FoldArray] reads the value of the event.
//
// Guarantee: no concurrent change is lost. An id is in the list at most once, where it was
// first added, so that Add and Remove may be repeated: the client does so by itself when a
// connection is lost.
//
// A call without an answer may have been applied. Repeat AddItem and Remove with the same id,
// AddItem only until the item is removed; a removed id must not be added again. After an
// Update without an answer, Read shows whether it was applied.
//
// Cost: Add and Remove send the item, or 9 B, and cost O(that). Read and Compact transfer
// everything that was appended since the last compaction, 13 B and the value for an item that
// was added. A change that finds the entry at the namespace's max_value_bytes compacts it,
// once; then it fails with FailedPrecondition (ValueTooLarge).
//
// Safe for concurrent use.
type Array struct {
	client  *timecache.Client
	key     string
	options ArrayOptions
}

// NewArray makes it; no call.
func NewArray(client *timecache.Client, key string, options ArrayOptions) *Array {
	return &Array{client, key, options}
}

// Add adds a value at the end, and returns its id, which is new.
func (a *Array) Add(ctx context.Context, value []byte) (id uint64, err error) {
	item := Item{NewID(), value}
	return item.ID, a.AddItem(ctx, item)
}

// AddItem is Add with an id of the caller's: of [NewID].
func (a *Array) AddItem(ctx context.Context, item Item) error {
	options := []timecache.AppendOption{timecache.Repeatable(), timecache.RenewOption(!a.options.KeepDeadline)}
	if a.options.TTL != 0 {
		options = append(options, timecache.TTL(a.options.TTL))
	}
	return a.append(ctx, appendItem(nil, item), options...)
}

// Remove removes an item. An id that is not in the list is no error.
func (a *Array) Remove(ctx context.Context, id uint64) error {
	record := binary.LittleEndian.AppendUint64([]byte{removed}, id)
	err := a.append(ctx, record, timecache.Repeatable(), timecache.IfPresent)
	if errors.Is(err, timecache.KeyNotFound) {
		return nil
	}
	return err
}

// Read reads the list. DataLoss: the entry is no array.
func (a *Array) Read(ctx context.Context) (Contents, error) {
	entry, found, err := a.client.Get(ctx, a.key)
	if err != nil || !found {
		return Contents{}, err
	}
	contents, err := FoldArray(entry.Value)
	contents.Version = entry.Version
	return contents, err
}

// Update reads the list, lets change make another one of it, and stores that if the entry has
// not changed meanwhile; otherwise it begins anew, up to 16 times: then Aborted. It may call
// change several times, which gives new items an id by [NewID].
func (a *Array) Update(ctx context.Context, change func([]Item) []Item) error {
	return a.rewrite(ctx, change, !a.options.KeepDeadline)
}

// Compact rewrites the entry without removed items; it keeps its deadline. Worth the transfer
// when StoredBytes is a multiple of CompactBytes. Aborted as in Update.
func (a *Array) Compact(ctx context.Context) error {
	return a.rewrite(ctx, func(items []Item) []Item { return items }, false)
}

// append: a record that comes twice is folded once.
func (a *Array) append(ctx context.Context, record []byte, options ...timecache.AppendOption) error {
	_, err := a.client.Append(ctx, a.key, record, options...)
	if !errors.Is(err, timecache.ValueTooLarge) {
		return err
	}
	if err := a.Compact(ctx); err != nil {
		return err
	}
	_, err = a.client.Append(ctx, a.key, record, options...)
	return err
}

func (a *Array) rewrite(ctx context.Context, change func([]Item) []Item, renew bool) error {
	for range maxRewrites {
		contents, err := a.Read(ctx)
		if err != nil {
			return err
		}
		items := change(contents.Items)
		if contents.Version == 0 && len(items) == 0 {
			return nil
		}
		var value []byte
		for _, item := range items {
			value = appendItem(value, item)
		}
		options := []timecache.PutOption{timecache.IfAbsent}
		if contents.Version != 0 {
			options[0] = timecache.IfVersion(contents.Version)
		}
		if contents.Version != 0 && !renew {
			options = append(options, timecache.KeepDeadline)
		} else if a.options.TTL != 0 {
			options = append(options, timecache.TTL(a.options.TTL))
		}
		if _, err = a.client.Put(ctx, a.key, value, options...); !isUnmet(err) {
			return err
		}
	}
	return &timecache.Error{Code: codes.Aborted,
		Message: fmt.Sprintf("the array %q was changed %d times while it was to be rewritten", a.key, maxRewrites)}
}

func appendItem(to []byte, item Item) []byte {
	to = binary.LittleEndian.AppendUint64(append(to, added), item.ID)
	return appendSized(to, item.Value)
}

// FoldArray decodes the value of an [Array]'s entry. DataLoss: it is none.
func FoldArray(value []byte) (Contents, error) {
	contents := Contents{StoredBytes: len(value)}
	places := map[uint64]int{}
	var items []*Item // nil: removed.
	for rest := value; len(rest) > 0; {
		record, kind := rest, rest[0]
		id, left, is := takeUint64(rest[1:])
		var data []byte
		if is && kind == added {
			data, left, is = takeSized(left)
		}
		if !is || kind != added && kind != removed {
			return Contents{}, &timecache.Error{Code: codes.DataLoss, Message: fmt.Sprintf(
				"the value is no array: byte %d of %d begins no whole record", len(value)-len(record), len(value))}
		}
		rest = left
		// Later records of an id are repetitions of earlier calls, unless they remove it.
		place, known := places[id]
		switch {
		case !known && kind == added:
			items = append(items, &Item{id, data})
		case !known:
			items = append(items, nil)
		case kind == removed:
			items[place] = nil
		}
		if !known {
			places[id] = len(items) - 1
		}
	}
	for _, item := range items {
		if item != nil {
			contents.Items = append(contents.Items, *item)
			contents.CompactBytes += 1 + 8 + 4 + len(item.Value)
		}
	}
	return contents, nil
}
