package recipes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
)

// LogEvent is one of an [EventLog].
type LogEvent struct {
	// Time has a resolution of 1 us.
	Time time.Time
	Data []byte
	// ID identifies it: of [NewID].
	ID uint64
}

// Page is what was read of an [EventLog].
type Page struct {
	// Events are ordered by chunk; within a chunk in Read by time, in ReadNew by arrival.
	Events []LogEvent
	// MayHaveMissed: requested events may have expired.
	MayHaveMissed bool
}

// Position is a reader's in an [EventLog]: plain numbers, which may be stored.
type Position struct {
	// Chunk is the newest one that was read.
	Chunk int64
	// Offset is how many bytes of it were read, PreviousOffset of the chunk before.
	Offset, PreviousOffset uint64
}

// EventLogOptions are those of an [EventLog]. The zero value is good.
type EventLogOptions struct {
	// Chunk is the period that the events of one entry cover, at least 1 ms. 0: 10 s.
	Chunk time.Duration
	// Chunks is how many of them are kept, 2 to 4,096. 0: 61. The namespace's max_ttl must be
	// at least Chunks x Chunk.
	Chunks int
}

// EventLog is a log of recent events, written and read by many clients, in chunks of time.
//
//	audit := recipes.NewEventLog(client, "audit", recipes.EventLogOptions{Chunk: time.Minute})
//	audit.Append(ctx, time.Now(), []byte("alice logged in"))
//	lastHour, err := audit.Read(ctx, time.Now().Add(-time.Hour), time.Now())
//
// The entry NAME/N of the client's namespace has the events from N x Chunk on, and lives for
// Chunks x Chunk. An old chunk expires as any entry; a watch on KeyPrefix archives it
// ([DecodeEvents]).
//
// Guarantee: an event can be read for at least (Chunks - 1) x Chunk after its time, if it is
// appended at its time: the clocks of the writers and of the server must agree; their
// difference shortens this time. Each event comes once, also if Append was repeated. ReadNew
// gives each event that is appended at most one chunk after its time exactly once, in
// whatever order writers are; later ones only Read gives.
//
// A call without an answer may have happened. The client repeats an Append where its
// connection was lost; after another error AppendEvent the same event again: readers
// recognise it by its id.
//
// Cost: Append is one round trip, and sends the event and 20 B. Reading transfers whole
// chunks, as many as fit into a response (3 MiB) for each round trip; so ReadNew transfers at
// least two chunks. A chunk has room for the namespace's max_value_bytes; beyond that Append
// is FailedPrecondition (ValueTooLarge): take shorter chunks, or several logs.
//
// Safe for concurrent use.
type EventLog struct {
	members
	options EventLogOptions
}

// NewEventLog makes it; no call.
func NewEventLog(client *timecache.Client, name string, options EventLogOptions) *EventLog {
	if options.Chunk == 0 {
		options.Chunk = 10 * time.Second
	}
	if options.Chunks == 0 {
		options.Chunks = 61
	}
	return &EventLog{members{client, name + "/"}, options}
}

// Append adds an event, and returns its id, which is new.
func (l *EventLog) Append(ctx context.Context, at time.Time, data []byte) (id uint64, err error) {
	event := LogEvent{at, data, NewID()}
	return event.ID, l.AppendEvent(ctx, event)
}

// AppendEvent is Append with an id of the caller's.
func (l *EventLog) AppendEvent(ctx context.Context, event LogEvent) error {
	record := binary.LittleEndian.AppendUint64(nil, event.ID)
	record = binary.LittleEndian.AppendUint64(record, uint64(event.Time.UnixMicro()))
	// An event that comes twice is read once.
	_, err := l.client.Append(ctx, l.key(l.chunkOf(event.Time)), appendSized(record, event.Data),
		timecache.TTL(l.options.Chunk*time.Duration(l.options.Chunks)), timecache.Repeatable())
	return err
}

// Read returns the events from begin on and before end. MayHaveMissed: begin is more than
// (Chunks - 1) x Chunk before end. DataLoss: an entry is no chunk.
func (l *EventLog) Read(ctx context.Context, begin, end time.Time) (Page, error) {
	if !begin.Before(end) {
		return Page{}, nil
	}
	last := l.chunkOf(end.Add(-time.Microsecond))
	oldest := last - int64(l.options.Chunks) + 1
	wanted := l.chunkOf(begin)
	values, err := l.get(ctx, max(wanted, oldest-1), last)
	if err != nil {
		return Page{}, err
	}
	page := Page{MayHaveMissed: wanted < oldest}
	for _, value := range values {
		events, err := DecodeEvents(value, 0)
		if err != nil {
			return Page{}, err
		}
		for _, event := range events {
			if !event.Time.Before(begin) && event.Time.Before(end) {
				page.Events = append(page.Events, event)
			}
		}
	}
	slices.SortStableFunc(page.Events, func(a, b LogEvent) int { return a.Time.Compare(b.Time) })
	return page, nil
}

// PositionAt is the position from which ReadNew starts with the events of this time's chunk.
func (l *EventLog) PositionAt(at time.Time) Position {
	return Position{Chunk: l.chunkOf(at), PreviousOffset: math.MaxUint64}
}

// ReadNew returns the events since a position, up to the chunk of now, and the position after
// them. MayHaveMissed: the last call was more than (Chunks - 1) x Chunk ago.
func (l *EventLog) ReadNew(ctx context.Context, from Position, now time.Time) (Page, Position, error) {
	last := max(l.chunkOf(now), from.Chunk)
	oldest := last - int64(l.options.Chunks) + 1
	// A chunk more may still live, and the one before the position's may have got late events.
	first := max(from.Chunk-1, oldest-1)
	values, err := l.get(ctx, first, last)
	if err != nil {
		return Page{}, from, err
	}
	page, next := Page{MayHaveMissed: from.Chunk < oldest}, Position{Chunk: last}
	for i, value := range values {
		var offset uint64
		switch first + int64(i) {
		case from.Chunk:
			offset = from.Offset
		case from.Chunk - 1:
			offset = from.PreviousOffset
		}
		events, err := DecodeEvents(value, offset)
		if err != nil {
			return Page{}, from, err
		}
		page.Events = append(page.Events, events...)
		next.PreviousOffset, next.Offset = next.Offset, uint64(len(value))
	}
	return page, next, nil
}

func (l *EventLog) key(chunk int64) string { return l.prefix + strconv.FormatInt(chunk, 10) }

func (l *EventLog) chunkOf(at time.Time) int64 {
	micros, chunk := at.UnixMicro(), l.options.Chunk.Microseconds()
	if micros < 0 {
		return -1 - (-1-micros)/chunk
	}
	return micros / chunk
}

// get returns the values of these chunks; empty for missing ones.
func (l *EventLog) get(ctx context.Context, first, last int64) ([][]byte, error) {
	values := make([][]byte, last-first+1)
	wanted := make([]int, len(values))
	for i := range wanted {
		wanted[i] = i
	}
	for len(wanted) > 0 {
		asked := wanted[:min(len(wanted), timecache.MaxOperations)]
		wanted = slices.Clone(wanted[len(asked):])
		var operations []timecache.Operation
		for _, i := range asked {
			operations = append(operations, timecache.GetOperation(l.key(first+int64(i))))
		}
		results, err := l.client.Execute(ctx, operations, timecache.Repeatable())
		if err != nil {
			return nil, err
		}
		for n, result := range results {
			switch {
			case errors.Is(result.Err, timecache.MaxResponseBytes):
				// It fits into a later response: each has one at least.
				wanted = append(wanted, asked[n])
			case result.Err != nil:
				return nil, result.Err
			case result.Found:
				values[asked[n]] = result.Entry.Value
			}
		}
	}
	return values, nil
}

// DecodeEvents returns the events in the value of an [EventLog]'s entry that begin at or
// behind an offset. DataLoss: it is no chunk.
func DecodeEvents(value []byte, offset uint64) (events []LogEvent, err error) {
	ids := map[uint64]bool{}
	for rest := value; len(rest) > 0; {
		at := len(value) - len(rest)
		id, left, _ := takeUint64(rest)
		micros, left, _ := takeUint64(left)
		data, left, is := takeSized(left)
		if !is {
			return nil, &timecache.Error{Code: codes.DataLoss, Message: fmt.Sprintf(
				"the value is no chunk of events: byte %d of %d begins no whole one", at, len(value))}
		}
		rest = left
		// Repeated events were read the first time.
		if !ids[id] && uint64(at) >= offset {
			events = append(events, LogEvent{time.UnixMicro(int64(micros)), data, id})
		}
		ids[id] = true
	}
	return events, nil
}
