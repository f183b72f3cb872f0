package timecache

import (
	"context"
	"iter"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// Position is one in the log of a namespace, for [Client.CreateGroup] and [Client.SeekGroup]:
// [FromNow], [FromEarliest], a [FromTime] or an [AfterToken].
type Position interface{ position() *pb.GroupPosition }

func (s Start) position() *pb.GroupPosition {
	return &pb.GroupPosition{Position: &pb.GroupPosition_Start{Start: pb.WatchStart(s)}}
}

// FromTime is the first retained event that died after this moment: 1970 or later.
type FromTime time.Time

func (t FromTime) position() *pb.GroupPosition {
	return &pb.GroupPosition{Position: &pb.GroupPosition_Time{Time: timestamppb.New(time.Time(t))}}
}

// AfterToken is the event after a batch of [Client.Watch]: its ResumeToken.
type AfterToken []byte

func (t AfterToken) position() *pb.GroupPosition {
	return &pb.GroupPosition{Position: &pb.GroupPosition_ResumeToken{ResumeToken: t}}
}

func toPosition(position Position) *pb.GroupPosition {
	if position == nil {
		return nil
	}
	return position.position()
}

// SeekResult is what a SeekGroup came to.
type SeekResult struct {
	// Unsettled is how many events the group is to deliver now, those that it kept included.
	Unsettled uint64
	// Dropped is how many were dropped by [DropUnsettled].
	Dropped uint64
}

// SeekGroup moves a group: from now on it delivers the retained events from there on, as first
// attempts, those that it has settled, too; a nil position is FromNow. Settlements of deliveries
// from before are FailedPrecondition (StaleAttempt). Events before the position that are not
// settled stay, with their attempts, unless [DropUnsettled] is given. Events that are no longer
// retained are not delivered; from a token on they are counted as Lost. NotFound (GroupNotFound);
// of a token also as [Client.Watch]. Not tried again by itself, as it ends attempts.
func (c *Client) SeekGroup(ctx context.Context, name string, position Position, options ...SeekOption) (SeekResult, error) {
	s := collect(options)
	request := &pb.SeekGroupRequest{Namespace: c.options.Namespace, Name: name, Position: toPosition(position),
		DropUnsettled: s.dropUnsettled}
	response, err := call[pb.SeekGroupResponse](ctx, c, pb.GroupService_SeekGroup_FullMethodName, request, s, once)
	return SeekResult{response.GetUnsettled(), response.GetDropped()}, err
}

// ListMembers lists the streams that are members of a group, the oldest first. NotFound
// (GroupNotFound).
func (c *Client) ListMembers(ctx context.Context, group string, options ...CallOption) ([]*GroupMember, error) {
	request := &pb.ListMembersRequest{Namespace: c.options.Namespace, Name: group}
	response, err := call[pb.ListMembersResponse](ctx, c, pb.GroupService_ListMembers_FullMethodName, request, collect(options), safe)
	return response.GetMembers(), err
}

// UnsettledState is what an unsettled event waits for.
type UnsettledState int

const (
	// UnsettledUnknown is one that this client is too old to know.
	UnsettledUnknown = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_UNSPECIFIED)
	// UnsettledReady: to be delivered.
	UnsettledReady = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_READY)
	// UnsettledBlockedByKey: an earlier event of its key to be settled.
	UnsettledBlockedByKey = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_BLOCKED_BY_KEY)
	// UnsettledInFlight: a member, or a caller of FetchExpired, to settle it.
	UnsettledInFlight = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_IN_FLIGHT)
	// UnsettledDelayed: its next attempt.
	UnsettledDelayed = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_DELAYED)
	// UnsettledDeadLettering: to become a dead letter.
	UnsettledDeadLettering = UnsettledState(pb.UnsettledState_UNSETTLED_STATE_DEAD_LETTERING)
)

// String returns the state's name, such as "IN_FLIGHT".
func (s UnsettledState) String() string {
	return strings.TrimPrefix(pb.UnsettledState(s).String(), "UNSETTLED_STATE_")
}

// UnsettledEvent is an event that a group has not settled.
type UnsettledEvent struct {
	// Event is as it was or will be delivered; Attempt 0: not yet. Its DeliveryToken settles it,
	// whoever holds it, by [Client.Settle].
	Event ExpiredEvent
	// State is what it waits for.
	State UnsettledState
	// MemberID is, in flight, the GroupMember.Id of the one that holds it; 0: a caller of
	// FetchExpired.
	MemberID uint64
	// Since is, in flight, since when. Due is, in flight, when it times out; delayed, when it may
	// be delivered; dead-lettering, when that is tried next. Otherwise the zero time.
	Since, Due time.Time
}

// UnsettledOptions: which events ListUnsettled lists.
type UnsettledOptions struct {
	// KeyPrefix: only keys that begin with this, of at most 4 KiB. Empty: all.
	KeyPrefix string
	// IncludeValues: with values and parts, as many as fit: another has OmittedValueBytes.
	IncludeValues bool
	// PageSize is how many events a call asks for, at most 1,000; less holds less memory. 0: 100.
	PageSize int
}

// ListUnsettled lists the events that a group has not settled, the oldest first: a round trip for
// each page, which shows its events as they are then. An error comes last: NotFound
// (GroupNotFound).
func (c *Client) ListUnsettled(ctx context.Context, group string, list UnsettledOptions,
	options ...CallOption) iter.Seq2[UnsettledEvent, error] {
	s := collect(options)
	return func(yield func(UnsettledEvent, error) bool) {
		request := &pb.ListUnsettledRequest{Namespace: c.options.Namespace, Name: group,
			PageSize: int32(min(list.PageSize, 1000)), KeyPrefix: []byte(list.KeyPrefix), IncludeValues: list.IncludeValues}
		for {
			page, err := call[pb.ListUnsettledResponse](ctx, c, pb.GroupService_ListUnsettled_FullMethodName, request, s, safe)
			if err != nil {
				yield(UnsettledEvent{}, err)
				return
			}
			for _, one := range page.Events {
				if !yield(toUnsettled(one), nil) {
					return
				}
			}
			if request.PageToken = page.NextPageToken; request.PageToken == "" {
				return
			}
		}
	}
}

func toUnsettled(one *pb.UnsettledEvent) UnsettledEvent {
	state := UnsettledState(one.State)
	if _, known := pb.UnsettledState_name[int32(one.State)]; !known {
		state = UnsettledUnknown
	}
	event := UnsettledEvent{State: state, MemberID: one.MemberId, Since: toTime(one.Since), Due: toTime(one.Due)}
	if one.Event != nil {
		event.Event = toEvent(one.Event)
	}
	return event
}

// FetchOptions of [Client.FetchExpired]. 0: the default.
type FetchOptions struct {
	// Start is where a group starts that is made by this.
	Start Start
	// MaxEvents is the most events to fetch: 1 to 8,192. 0: 100.
	MaxEvents int
	// Wait is how long to wait, on the server's clock, for the first event if there is none: 0 to
	// 1 min. A call whose context has no deadline gets so much longer than Options.Timeout.
	Wait time.Duration
	// KeysOnly: leave the values out.
	KeysOnly bool
}

// FetchExpired fetches events of a consumer group, without a stream: for cron jobs, functions and
// others that come and go. The group is made if it is not there; streams and fetches share it. No
// events: none came within the wait. Each event must be settled, by [Client.Settle], within the
// group's ack timeout: only time returns it, not the end of the connection.
//
// FailedPrecondition (SingleActive): the group has a single active member. ResourceExhausted
// (MaxWatchers). Never tried again by itself: what an answer brought that was lost comes again
// after the ack timeout.
func (c *Client) FetchExpired(ctx context.Context, group string, fetch FetchOptions, options ...CallOption) (*WatchBatch, error) {
	request := &pb.FetchExpiredRequest{Namespace: c.options.Namespace, Group: group, Start: pb.WatchStart(fetch.Start),
		Wait: optional(fetch.Wait), KeysOnly: fetch.KeysOnly, MaxMessageBytes: new(uint32(MaxMessageBytes))}
	if fetch.MaxEvents != 0 {
		request.MaxEvents = new(toUint32(fetch.MaxEvents))
	}
	if _, has := ctx.Deadline(); !has && c.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.Timeout+max(fetch.Wait, 0))
		defer cancel()
	}
	response, err := call[pb.FetchExpiredResponse](ctx, c, pb.TimeCacheService_FetchExpired_FullMethodName, request, collect(options), once)
	if err != nil {
		return nil, err
	}
	return toBatch(fetched{response, c.options.Namespace}), nil
}

// fetched is an answer with the namespace that it is about.
type fetched struct {
	*pb.FetchExpiredResponse
	namespace string
}

func (f fetched) GetNamespace() string { return f.namespace }
