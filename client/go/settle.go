package timecache

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// MaxSettlements is how many a call of [Client.Settle] may have.
const MaxSettlements = 4096

// GroupDelay, as the delay of a [Nack] or as WorkerOptions.RetryDelay: as the group's RetryDelay
// says.
const GroupDelay = time.Duration(math.MinInt64)

// Action is what to do with an event: [Ack], [Nack], [PutBack], [Terminate] or [Extend].
type Action struct {
	kind      actionKind
	delay     time.Duration
	reason    string
	ttl       *durationpb.Duration
	expireAt  *timestamppb.Timestamp
	allowPast bool
}

type actionKind int

const (
	ack actionKind = iota
	nack
	putBack
	terminate
	extend
)

// Ack: it is done. Accepted also from an earlier delivery, while the event is unsettled.
func Ack() Action { return Action{kind: ack} }

// Nack: give it out again, after 0 to 7 days or [GroupDelay].
func Nack(delay time.Duration) Action { return Action{kind: nack, delay: delay} }

// Terminate: give it up. It becomes a dead letter now, whatever its attempts; in a namespace
// without a DeadLetterNamespace it is settled.
func Terminate() Action { return Action{kind: terminate} }

// WithReason adds to a Nack or Terminate why, for people, in at most 256 B of UTF-8: the
// LastReason of the event when it comes again, and the ReasonText of its dead letter. An [Ack] and
// the others have none.
func (a Action) WithReason(reason string) Action {
	a.reason = reason
	return a
}

// PutBack: put it back into the namespace, with its value or its parts and a fresh time to
// live, unless the key is there again; then done. Without a TTL it gets the one of its own
// that it had, or else the namespace's.
func PutBack(options ...PutBackOption) Action {
	s := collect(options)
	return Action{kind: putBack, ttl: s.ttl, expireAt: s.expireAt, allowPast: s.allowPast}
}

// Extend: the member needs longer, another ack timeout from now. A [Worker] sends it by
// itself; it is for [Client.Settle], and not for a handler to return.
func Extend() Action { return Action{kind: extend} }

func (a Action) String() string {
	return [...]string{ack: "Ack", nack: "Nack", putBack: "PutBack", terminate: "Terminate",
		extend: "Extend"}[a.kind]
}

// Name returns the action's name in the protos: "ack", "nack", "put_back", "terminate" or "extend".
func (a Action) Name() string {
	return [...]string{ack: "ack", nack: "nack", putBack: "put_back", terminate: "terminate",
		extend: "extend"}[a.kind]
}

// Settlement is what to do with one event.
type Settlement struct {
	// DeliveryToken is that of the event.
	DeliveryToken string
	// Action: the zero value is an Ack.
	Action Action
}

// Settlement is one of just this delivery of the event.
func (e *ExpiredEvent) Settlement(action Action) Settlement {
	return Settlement{e.DeliveryToken, action}
}

// SettleResult is what became of one settlement.
type SettleResult struct {
	// Err: NotFound (EventNotUnsettled): the event has been settled already, or is a dead
	// letter, or lost. FailedPrecondition (StaleAttempt): not an Ack, and too late, the
	// event has been given out again; or the group that gave it out is gone, also if there
	// is one of the same name. InvalidArgument: a field is out of its range. Of a
	// PutBack also what Put may fail with; the event stays unsettled.
	Err error
	// Version is, of a PutBack, the entry's new one; 0 if the key was there again and the
	// event was let go.
	Version uint64
}

// Settle settles or extends events of a consumer group of the namespace: a result for each, in their
// order. No settlements: no call. An error: none was settled (NotFound with GroupNotFound;
// InvalidArgument above MaxSettlements), or nobody knows: then again. Calls of goroutines that
// settle events of one group at the same time share a request, unless they bring metadata of
// their own, or spans: see [Options.Batching].
func (c *Client) Settle(ctx context.Context, group string, settlements []Settlement, options ...CallOption) (
	[]SettleResult, error) {
	if len(settlements) == 0 {
		return nil, nil
	}
	request := &pb.SettleExpiredRequest{Namespace: c.options.Namespace, Group: group}
	for _, settlement := range settlements {
		one := &pb.Settlement{DeliveryToken: []byte(settlement.DeliveryToken)}
		switch settlement.Action.kind {
		case ack:
			one.Action = &pb.Settlement_Ack{Ack: &pb.Ack{}}
		case nack:
			said := &pb.Nack{Reason: settlement.Action.reason}
			if settlement.Action.delay != GroupDelay {
				said.Delay = durationpb.New(settlement.Action.delay)
			}
			one.Action = &pb.Settlement_Nack{Nack: said}
		case putBack:
			one.Action = &pb.Settlement_PutBack{PutBack: &pb.PutBack{Ttl: settlement.Action.ttl,
				ExpireAt: settlement.Action.expireAt, AllowPast: settlement.Action.allowPast}}
		case terminate:
			one.Action = &pb.Settlement_Terminate{Terminate: &pb.Terminate{Reason: settlement.Action.reason}}
		case extend:
			one.Action = &pb.Settlement_Extend{Extend: &pb.Extend{}}
		}
		request.Settlements = append(request.Settlements, one)
	}
	response, err := c.settle(ctx, request, collect(options))
	if err != nil {
		return nil, err
	}
	if len(response.Results) != len(settlements) {
		return nil, unlike("another number of results than there were settlements")
	}
	results := make([]SettleResult, len(settlements))
	for i, result := range response.Results {
		results[i] = SettleResult{fromRPC(result.Error), result.Version}
	}
	return results, nil
}
