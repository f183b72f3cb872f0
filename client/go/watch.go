package timecache

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// Cause is why an entry died.
type Cause int

const (
	// CauseUnknown is one that this client is too old to know.
	CauseUnknown = Cause(pb.ExpiryCause_EXPIRY_CAUSE_UNSPECIFIED)
	// CauseExpired: its time was up.
	CauseExpired = Cause(pb.ExpiryCause_EXPIRY_CAUSE_EXPIRED)
	// CauseEvicted: the namespace was full; may come before the deadline.
	CauseEvicted = Cause(pb.ExpiryCause_EXPIRY_CAUSE_EVICTED)
	// CauseRotated: its bucket was killed by hand; may come before the deadline.
	CauseRotated = Cause(pb.ExpiryCause_EXPIRY_CAUSE_ROTATED)
	// CauseExpiring: it is not dead; its time will be up at DeathTime.
	CauseExpiring = Cause(pb.ExpiryCause_EXPIRY_CAUSE_EXPIRING)
)

// String returns the cause's name, such as "EXPIRED".
func (c Cause) String() string {
	return strings.TrimPrefix(pb.ExpiryCause(c).String(), "EXPIRY_CAUSE_")
}

// ExpiredEvent is an entry that died.
type ExpiredEvent struct {
	// Namespace is where it lived.
	Namespace string
	// Key has 1 B to 4 KiB.
	Key string
	// Value is empty with KeysOnly.
	Value []byte
	// OmittedValueBytes is the size of a value that was left out because the event does
	// not fit into a message that the client takes. Otherwise 0.
	OmittedValueBytes uint64
	// Version tells a re-put of the same key from the value that died.
	Version uint64
	// PutTime is when the time to live last began; Deadline is that and the time to live.
	PutTime, Deadline time.Time
	// DeathTime is from when on no reader saw it.
	DeathTime time.Time
	// DeliveredAt is when the server published it.
	DeliveredAt time.Time
	// Cause is why it died.
	Cause Cause
	// EventID is the event's number, for people to read; Attempt is the number of this
	// attempt, from 1. One that ended with its member's stream does not count: the next one
	// has the same number, and one more Returns. In a consumer group only; otherwise 0.
	EventID          uint64
	Attempt, Returns uint32
	// DeliveryToken names this delivery in a Settlement: bytes, at most 32. In a consumer
	// group only.
	DeliveryToken string
	// LastReason is what the Nack of the last attempt that counted gave as its reason. In a
	// consumer group only.
	LastReason string
	// CreateTime is when the key began to be there: changes and renewals keep it. The zero
	// time from an older server.
	CreateTime time.Time
	// OwnTTL is the entry's own time to live, which PutBack gives it again. 0: it had the
	// namespace's.
	OwnTTL time.Duration
	// Parts are there in place of a value where the key collected those of a Gather:
	// those that came, and what was expected.
	Parts *GatheredParts
	// Traceparent is the one that the entry kept: see [TraceEntry]. Empty: none.
	Traceparent string
}

// JSON decodes the value into what v points to.
func (e *ExpiredEvent) JSON(v any) error { return json.Unmarshal(e.Value, v) }

// WatchBatch is what died in one namespace, in order of death.
type WatchBatch struct {
	// Namespace is the one that this batch is about.
	Namespace string
	// Events may be empty: a heartbeat.
	Events []ExpiredEvent
	// Watermark: everything of this namespace that died at or before this moment, and
	// passes the filter, has come, or is counted in Lost. Never goes back, not over a
	// break either, but with LogChanged. In a group, all of that has been settled, too.
	// Of WatchExpiring: all that was in the map at this moment, and going to die within
	// the lead time, has been told.
	Watermark time.Time
	// Lost is how many events this watch missed since the namespace's last batch, or its
	// resume token: exact, with a prefix an upper bound. It read too slowly, or was away
	// for longer than they are retained. In a group: that the group lost.
	Lost uint64
	// ResumeToken, in WatchOptions.ResumeTokens, brings a later watch behind this batch:
	// store it when the batch has been handled. At most 128 B. Good until the namespace
	// is deleted, or the server stops and the namespace is not durable. Empty in a group
	// and of WatchExpiring.
	ResumeToken []byte
	// Reconnected says whether this is the namespace's first batch after a break. For
	// information: what died meanwhile is in this batch and the next ones.
	Reconnected bool
	// LogChanged says whether this is the first batch from another log: the server was
	// restarted, or the namespace deleted and made again. The watch goes on with the
	// oldest event of that log; what the old one still had to tell, about deaths after
	// MissedAfter, is lost, in number unknown. MissedAfter is the last watermark of the
	// old log; the zero time if this watch had none.
	LogChanged  bool
	MissedAfter time.Time
	// Delivered is, in a group, the moment up to which everything of this namespace that died
	// has been given to a member, in this batch or an earlier one of any member, or is settled,
	// or counted in Lost: nothing more comes from before it, but for attempts that fail. Goes
	// back only where the group is moved. The zero time while no moment is known, of an older
	// server, and otherwise.
	Delivered time.Time

	changes []ChangeEvent // Of WatchChanges.
}

// Start is where a watch or a group starts.
type Start int

const (
	// FromNow: with what dies from then on.
	FromNow = Start(pb.WatchStart_WATCH_START_UNSPECIFIED)
	// FromEarliest: with the oldest event that is still retained.
	FromEarliest = Start(pb.WatchStart_WATCH_START_EARLIEST)
)

// Reconnect says how a watch comes back after a break. The zero value is good.
type Reconnect struct {
	// WaitForServer: keep trying when the first attempt finds no server, too. Otherwise
	// the watch then ends with Unavailable, so that a wrong address is told at once.
	WaitForServer bool
	// MinPause and MaxPause are between attempts: doubled from one to the next, each
	// shortened at random by up to half. 0: 100 ms and 1 s.
	MinPause, MaxPause time.Duration
	// MaxSilence: a stream that brings nothing for this long, on this machine's clock, is
	// taken for broken; several heartbeats are a good value. 0: of a client with several
	// addresses 10 s, or four heartbeats if that is longer, so that a node that hangs is left;
	// otherwise off, because a virtual clock that stands still has no heartbeats, and a
	// connection that is dead is noticed within 40 s anyhow.
	MaxSilence time.Duration
	// OnBreak is told of every break and of every attempt that fails, before the pause, if
	// there is one.
	OnBreak func(error)
}

// WatchOptions of [Client.Watch] and [Client.WatchChanges].
type WatchOptions struct {
	// Namespaces: 1 to 64. Empty: the client's.
	Namespaces []string
	// Start is where it starts in namespaces without a resume token.
	Start Start
	// ResumeTokens say by namespace where an earlier watch has stopped: the token of the
	// last batch that it has handled.
	ResumeTokens map[string][]byte
	// KeyPrefix: only keys that begin with this. Empty: all.
	KeyPrefix string
	// KeysOnly: leave the values out.
	KeysOnly bool
	// Heartbeat is the longest time between two batches of one namespace, on the server's
	// clock: 10 ms to 1 h. 0: 1 s.
	Heartbeat time.Duration
	// FailOnLoss: end where events are lost: with OutOfRange (ResumePointTrimmed) in
	// place of a batch with Lost, with FailedPrecondition (LogChanged) or OutOfRange
	// (ResumePointAhead) in place of one with LogChanged.
	FailOnLoss bool
	// Reconnect says how the watch comes back after a break.
	Reconnect
}

// ExpiringOptions of [Client.WatchExpiring]. The fields are as in [WatchOptions].
type ExpiringOptions struct {
	Namespaces []string
	KeyPrefix  string
	KeysOnly   bool
	Heartbeat  time.Duration
	Reconnect
}

// ConsumeOptions of [Client.Consume].
type ConsumeOptions struct {
	// Namespaces, KeysOnly, Heartbeat and Reconnect are as in [WatchOptions].
	Namespaces []string
	// Start is where a group starts that is made by this.
	Start Start
	// MaxInFlight is the most events of each namespace that this member holds unsettled:
	// 1 to 65,536. 0: 1,000.
	MaxInFlight int
	KeysOnly    bool
	Heartbeat   time.Duration
	Reconnect
}

// Watch tells what dies in one or more namespaces. It reconnects by itself, and goes on
// behind the last batch: every event comes exactly once, or is counted in Lost, also over
// restarts of the server where the namespace is durable. Only where there is nothing to go
// on with does it begin anew, with the oldest event that is retained, and says LogChanged.
//
// The first batch of each namespace comes at once: from then on the watch stands, and every
// later death there is seen.
//
// The loop ends with an error: that of the context, or what the server says that is no
// break: NotFound (no such namespace, or deleted meanwhile), InvalidArgument,
// PermissionDenied, ResourceExhausted (MaxWatchers) at the first attempt, and with
// FailOnLoss a loss. A loop that was left by break may be done again, and goes on behind
// the batch that it left with. One loop at a time.
//
// Unauthenticated is a break where Options.TokenFile now holds another token than the one
// that was refused, as when tokens are replaced; that one is tried at once, and only once.
// So it is, but for the first attempt, where the file cannot be read: it may hold one later.
//
// Holds about a MiB of unread messages: who reads slowly is held up by flow control, and
// finally told by Lost.
func (c *Client) Watch(ctx context.Context, options WatchOptions, call ...CallOption) iter.Seq2[*WatchBatch, error] {
	w := c.newResumableWatch(ctx, options, call)
	w.resumable(options.Start, func(ctx context.Context, start pb.WatchStart, tokens [][]byte) (stream, error) {
		return opened(c.cache.WatchExpired(ctx, &pb.WatchExpiredRequest{Namespaces: w.namespaces, Start: start,
			ResumeTokens: tokens, FailOnLoss: options.FailOnLoss, KeyPrefix: []byte(options.KeyPrefix),
			KeysOnly: options.KeysOnly, HeartbeatInterval: optional(options.Heartbeat), MaxMessageBytes: &w.maxMessageBytes}))
	})
	return w.run
}

func (c *Client) newResumableWatch(ctx context.Context, options WatchOptions, call []CallOption) *watch {
	w := c.newWatch(ctx, options.Namespaces, options.Heartbeat, options.Reconnect, call)
	for namespace, token := range options.ResumeTokens {
		w.position(namespace).resumeToken = token
	}
	w.failOnLoss = options.FailOnLoss
	return w
}

// WatchExpiring tells what is going to die within the lead time, 1 ms to 10 years, in time
// to Touch it, with [CauseExpiring]. After a break, what was told before may be told again,
// under the same version and deadline. As for the rest, see [Client.Watch].
func (c *Client) WatchExpiring(ctx context.Context, lead time.Duration, options ExpiringOptions,
	call ...CallOption) iter.Seq2[*WatchBatch, error] {
	w := c.newWatch(ctx, options.Namespaces, options.Heartbeat, options.Reconnect, call)
	w.open = func(ctx context.Context) (stream, error) {
		return opened(c.cache.WatchExpiring(ctx, &pb.WatchExpiringRequest{Namespaces: w.namespaces,
			LeadTime: durationpb.New(lead), KeyPrefix: []byte(options.KeyPrefix), KeysOnly: options.KeysOnly,
			HeartbeatInterval: optional(options.Heartbeat), MaxMessageBytes: &w.maxMessageBytes}))
	}
	return w.run
}

// Consume tells a member's share of what dies, as a member of a consumer group, which is
// made if it is not there. Every event must be settled, by [Client.Settle], within the
// group's ack timeout; [Client.Worker] does all that by itself. After a break, what was
// given and not settled is given out again, to this member or another. As for the rest, see
// [Client.Watch]; NotFound also where the group is deleted.
func (c *Client) Consume(ctx context.Context, group string, options ConsumeOptions,
	call ...CallOption) iter.Seq2[*WatchBatch, error] {
	w := c.newWatch(ctx, options.Namespaces, options.Heartbeat, options.Reconnect, call)
	w.open = func(ctx context.Context) (stream, error) {
		request := &pb.ConsumeExpiredRequest{Namespaces: w.namespaces, Group: group,
			Start: pb.WatchStart(options.Start), KeysOnly: options.KeysOnly,
			HeartbeatInterval: optional(options.Heartbeat), MaxMessageBytes: &w.maxMessageBytes}
		if w.established { // One that has to be made again leaves nothing out.
			request.Start = pb.WatchStart_WATCH_START_EARLIEST
		}
		if options.MaxInFlight != 0 {
			request.MaxInFlight = new(toUint32(options.MaxInFlight))
		}
		return opened(c.cache.ConsumeExpired(ctx, request))
	}
	return w.run
}

// resumable opens a stream that begins where the last one has ended, or anew where the log is
// another: with the tokens of the namespaces that have one.
func (w *watch) resumable(start Start, open func(ctx context.Context, start pb.WatchStart, tokens [][]byte) (stream, error)) {
	w.open = func(ctx context.Context) (stream, error) {
		start := pb.WatchStart(start)
		var tokens [][]byte
		// Namespaces without a token all begin alike: where one needs all of its log,
		// another that has not begun gets more than was asked, never less.
		for _, position := range w.positions {
			if position.logChanged {
				start = pb.WatchStart_WATCH_START_EARLIEST
			}
			if len(position.resumeToken) > 0 {
				tokens = append(tokens, position.resumeToken)
			}
		}
		return open(ctx, start, tokens)
	}
}

// watch is the state of a watch between its streams.
type watch struct {
	ctx             context.Context
	client          *Client
	namespaces      []string
	reconnect       Reconnect
	failOnLoss      bool
	open            func(context.Context) (stream, error)
	maxMessageBytes uint32
	established     bool // Whether any batch has come.
	silent          int  // Streams without any, before that.
	// Whether another token was tried since the last batch: a file with ever another one
	// would be read for ever.
	triedToken bool
	pauses     pauses
	positions  map[string]*position
}

// position is how far a watch has come in a namespace.
type position struct {
	watermark   time.Time
	resumeToken []byte
	broken      bool // No batch since the last break,
	logChanged  bool // or since the log was another.
}

// stream is one of any kind.
type stream struct {
	receive func() (*WatchBatch, error)
	trailer func() metadata.MD
}

// errSilent is why a stream ends that has brought nothing for [Reconnect.MaxSilence].
var errSilent = &Error{Code: codes.Unavailable, Message: "the server fell silent"}

// clusterSilence is how long a node of a cluster may be silent.
const clusterSilence = 10 * time.Second

func (c *Client) newWatch(ctx context.Context, namespaces []string, heartbeat time.Duration, reconnect Reconnect, call []CallOption) *watch {
	if len(namespaces) == 0 {
		namespaces = []string{c.options.Namespace}
	}
	reconnect.MinPause = cmp.Or(reconnect.MinPause, 100*time.Millisecond)
	reconnect.MaxPause = cmp.Or(reconnect.MaxPause, time.Second)
	if c.conn.hasOthers() {
		reconnect.MaxSilence = cmp.Or(reconnect.MaxSilence, max(clusterSilence, 4*heartbeat))
	}
	return &watch{ctx: collect(call).outgoing(ctx), client: c, namespaces: slices.Clone(namespaces), reconnect: reconnect,
		maxMessageBytes: MaxMessageBytes, positions: map[string]*position{},
		pauses: pauses{min: reconnect.MinPause, max: reconnect.MaxPause}}
}

func (w *watch) position(namespace string) *position {
	if w.positions[namespace] == nil {
		w.positions[namespace] = &position{}
	}
	return w.positions[namespace]
}

// run is the iterator.
func (w *watch) run(yield func(*WatchBatch, error) bool) {
	w.triedToken = false
	for {
		begun := time.Now()
		failure, left := w.stream(yield)
		if left {
			return
		}
		if w.ctx.Err() != nil {
			yield(nil, newError(w.ctx.Err(), nil))
			return
		}
		if w.beginAnew(failure) {
			continue
		}
		hasOtherToken, why := w.afterRefusal(begun, failure)
		if !hasOtherToken && !w.isBreak(why) && !w.takeSmallerMessages(failure) {
			yield(nil, failure)
			return
		}
		w.breakAll()
		if w.reconnect.OnBreak != nil {
			w.reconnect.OnBreak(why)
		}
		if hasOtherToken && w.ctx.Err() == nil { // The server is there.
			continue
		}
		pause := w.pauses.next()
		if why.throttled() { // Its batches come, and it is throttled all the same.
			pause = w.reconnect.MaxPause
		}
		if !sleep(w.ctx, pause) {
			err := cmp.Or(w.ctx.Err(), context.DeadlineExceeded)
			yield(nil, newError(err, nil))
			return
		}
		// It is our pause that counts.
		if conn := w.client.conn.clientConn(); conn != nil {
			conn.ResetConnectBackoff()
		}
	}
}

// stream reads one stream to its end, and returns why it ended, or that the caller has left.
func (w *watch) stream(yield func(*WatchBatch, error) bool) (failure *Error, left bool) {
	ctx, cancel := context.WithCancelCause(w.ctx)
	defer cancel(nil)
	silence := &time.Timer{}
	if w.reconnect.MaxSilence > 0 {
		silence = time.AfterFunc(w.reconnect.MaxSilence, func() { cancel(errSilent) })
		defer silence.Stop()
		ctx = context.WithValue(ctx, onAttempt{}, func() { silence.Reset(w.reconnect.MaxSilence) })
	}
	conn := w.client.conn
	node := conn.current.Load()
	stream, err := w.open(ctx)
	if err != nil {
		return w.client.failure(err, nil), false
	}
	for {
		batch, err := stream.receive()
		if err != nil {
			if failure, ok := context.Cause(ctx).(*Error); ok {
				return failure, false
			}
			if err == io.EOF {
				failure := &Error{Code: codes.Unavailable, Message: "the server is stopping"}
				conn.moveOn(w.ctx, node, failure)
				return failure, false
			}
			return w.client.failure(err, stream.trailer()), false
		}
		if w.reconnect.MaxSilence > 0 {
			silence.Stop()
		}
		if w.accept(batch); !yield(batch, nil) {
			w.breakAll()
			return nil, true
		}
		if w.reconnect.MaxSilence > 0 {
			silence.Reset(w.reconnect.MaxSilence)
		}
	}
}

func (w *watch) breakAll() {
	for _, namespace := range w.namespaces {
		w.position(namespace).broken = w.established
	}
}

func (w *watch) accept(batch *WatchBatch) {
	w.established, w.triedToken = true, false
	w.pauses.reset()
	position := w.position(batch.Namespace)
	if batch.LogChanged = position.logChanged; batch.LogChanged {
		batch.MissedAfter = position.watermark
	}
	batch.Reconnected = position.broken
	position.broken, position.logChanged = false, false
	position.watermark, position.resumeToken = batch.Watermark, batch.ResumeToken
}

// afterRefusal says whether there is another token than the one that was refused, if that is
// why a stream that began then has failed; and of what to tell and judge the break by, which is
// the token's file if that cannot be read.
func (w *watch) afterRefusal(begun time.Time, failure *Error) (hasOtherToken bool, why *Error) {
	if w.triedToken {
		return false, failure
	}
	hasOtherToken, unread := w.client.token.afterRefusal(begun, failure)
	w.triedToken = hasOtherToken
	if !hasOtherToken && unread != nil {
		failure = &Error{Code: codes.Unavailable, Message: unread.Error(), cause: unread}
	}
	return hasOtherToken, failure
}

// beginAnew says whether the server has refused the token of a namespace, which has another
// log now, and the watch may begin that one anew. Each time a token goes, so that this comes
// to an end.
func (w *watch) beginAnew(failure *Error) bool {
	if w.failOnLoss || failure.Reason != LogChanged && failure.Reason != ResumePointAhead {
		return false
	}
	position, known := w.positions[failure.Metadata["namespace"]]
	if !known || len(position.resumeToken) == 0 {
		return false
	}
	position.resumeToken, position.logChanged = nil, true
	return true
}

// takeSmallerMessages says whether a message came that is too large for a connection of the
// caller's making, and the watch may ask for smaller ones.
func (w *watch) takeSmallerMessages(failure *Error) bool {
	const grpcDefault = 4 << 20
	if !failure.messageTooLarge() || w.maxMessageBytes <= grpcDefault {
		return false
	}
	w.maxMessageBytes = grpcDefault
	return true
}

// isBreak says whether what the stream ended with passes. A server that gives a reason means
// it, but where that passes.
func (w *watch) isBreak(failure *Error) bool {
	if !w.established && !w.reconnect.WaitForServer {
		// A node that hangs: each address has its turn.
		w.silent++
		return failure == errSilent && w.silent < len(w.client.conn.addresses)
	}
	return w.client.mayComeBack(failure) || failure.throttled() ||
		failure.Reason == MaxWatchers || failure.Reason == MaxExpiringWatchers
}

// response is what all kinds of messages have.
type response interface {
	GetNamespace() string
	GetWatermark() *timestamppb.Timestamp
}

func opened[Response any, Pointer interface {
	*Response
	response
}](s grpc.ServerStreamingClient[Response], err error) (stream, error) {
	if err != nil {
		return stream{}, err
	}
	return stream{trailer: s.Trailer, receive: func() (*WatchBatch, error) {
		message, err := s.Recv()
		if err != nil {
			return nil, err
		}
		return toBatch(Pointer(message)), nil
	}}, nil
}

func toBatch(message response) *WatchBatch {
	batch := &WatchBatch{Namespace: message.GetNamespace(), Watermark: toTime(message.GetWatermark())}
	if message, has := message.(interface{ GetEvents() []*pb.ExpiredEvent }); has {
		batch.Events = make([]ExpiredEvent, len(message.GetEvents()))
		for i, event := range message.GetEvents() {
			batch.Events[i] = toEvent(event)
		}
	}
	if message, has := message.(interface{ GetChanges() []*pb.ChangeEvent }); has {
		batch.changes = make([]ChangeEvent, len(message.GetChanges()))
		for i, change := range message.GetChanges() {
			batch.changes[i] = toChange(change)
		}
	}
	if message, has := message.(interface{ GetLost() uint64 }); has {
		batch.Lost = message.GetLost()
	}
	if message, has := message.(interface{ GetResumeToken() []byte }); has {
		batch.ResumeToken = message.GetResumeToken()
	}
	if message, has := message.(interface {
		GetDeliveredWatermark() *timestamppb.Timestamp
	}); has {
		batch.Delivered = toMoment(message.GetDeliveredWatermark())
	}
	return batch
}

func toEvent(event *pb.ExpiredEvent) ExpiredEvent {
	return ExpiredEvent{Namespace: event.Namespace, Key: string(event.Key), Value: event.Value,
		OmittedValueBytes: event.OmittedValueBytes, Version: event.Version,
		PutTime: toTime(event.PutTime), Deadline: toTime(event.Deadline),
		DeathTime: toTime(event.DeathTime), DeliveredAt: toTime(event.DeliveredAt),
		Cause: toCause(event.Cause), EventID: event.EventId, Attempt: event.Attempt, Returns: event.Returns,
		DeliveryToken: string(event.DeliveryToken), LastReason: event.LastReason,
		CreateTime: toTime(event.CreateTime), OwnTTL: event.OwnTtl.AsDuration(), Parts: toParts(event.Parts),
		Traceparent: event.Traceparent}
}

// toMoment takes a time that is unset or 1970 where there is none.
func toMoment(t *timestamppb.Timestamp) time.Time {
	if t.GetSeconds() == 0 && t.GetNanos() == 0 {
		return time.Time{}
	}
	return t.AsTime()
}

func toCause(cause pb.ExpiryCause) Cause {
	if _, known := pb.ExpiryCause_name[int32(cause)]; !known {
		return CauseUnknown
	}
	return Cause(cause)
}

// optional is a duration where 0 stands for unset.
func optional(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
