package timecache

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// settling collects the settlements of a group that are made while a request of the group is
// under way: they go with the next. Safe for concurrent use.
type settling struct {
	mu     sync.Mutex
	queues map[settledGroup][]*settleCall // Of the groups with a request under way.
}

type settledGroup struct{ namespace, group string }

// settleCall is a call of [Client.Settle] that waits for another's request.
type settleCall struct {
	request  *pb.SettleExpiredRequest
	deadline time.Time // The zero time: none.
	done     chan struct{}
	response *pb.SettleExpiredResponse
	failure  *Error
}

// settle sends settlements at once, or with others if a request is under way.
func (c *Client) settle(ctx context.Context, request *pb.SettleExpiredRequest, s *settings) (*pb.SettleExpiredResponse, error) {
	alone := func() (*pb.SettleExpiredResponse, error) {
		return call[pb.SettleExpiredResponse](ctx, c, pb.TimeCacheService_SettleExpired_FullMethodName, request, s, once)
	}
	_, hasMetadata := metadata.FromOutgoingContext(ctx)
	if !c.batches(s) || hasMetadata || len(s.metadata) > 0 || s.repeatable || c.options.Tracing != nil {
		return alone()
	}
	group := settledGroup{request.Namespace, request.Group}
	c.settling.mu.Lock()
	queue, isBusy := c.settling.queues[group]
	if !isBusy {
		c.settling.queues[group] = nil
		c.settling.mu.Unlock()
		defer c.settleNext(group)
		return alone()
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	one := &settleCall{request: request, done: make(chan struct{})}
	one.deadline, _ = ctx.Deadline()
	c.settling.queues[group] = append(queue, one)
	c.settling.mu.Unlock()
	select {
	case <-one.done:
	case <-ctx.Done():
		failure := newError(ctx.Err(), nil)
		c.settling.mu.Lock()
		defer c.settling.mu.Unlock()
		queue := c.settling.queues[group]
		i := slices.Index(queue, one)
		if failure.MaybeApplied = i < 0; i >= 0 {
			c.settling.queues[group] = slices.Delete(queue, i, i+1)
		}
		return nil, failure
	}
	if one.response == nil && one.failure == nil {
		return alone()
	}
	if one.failure != nil {
		return nil, one.failure
	}
	return one.response, nil
}

// settleNext sends what has been collected meanwhile.
func (c *Client) settleNext(group settledGroup) {
	c.settling.mu.Lock()
	queue := c.settling.queues[group]
	request := &pb.SettleExpiredRequest{Namespace: group.namespace, Group: group.group}
	count := 0
	for ; count < len(queue); count++ {
		more := queue[count].request.Settlements
		if count > 0 && len(request.Settlements)+len(more) > MaxSettlements {
			break
		}
		request.Settlements = append(request.Settlements, more...)
	}
	if count == 0 {
		delete(c.settling.queues, group)
	} else {
		c.settling.queues[group] = queue[count:]
	}
	c.settling.mu.Unlock()
	if count > 0 {
		go c.settleAll(group, request, queue[:count:count])
	}
}

// settleAll does the request of several calls. Each has its results; or, if one of them makes
// the server refuse all, does its own.
func (c *Client) settleAll(group settledGroup, request *pb.SettleExpiredRequest, calls []*settleCall) {
	defer c.settleNext(group)
	ctx := context.Background()
	last := slices.MaxFunc(calls, func(a, b *settleCall) int { return a.deadline.Compare(b.deadline) })
	if !slices.ContainsFunc(calls, func(one *settleCall) bool { return one.deadline.IsZero() }) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, last.deadline)
		defer cancel()
	}
	failure := unlike("another number of results than there were settlements")
	response := new(pb.SettleExpiredResponse)
	if err := c.unary(ctx, pb.TimeCacheService_SettleExpired_FullMethodName, request, response); err != nil {
		failure = err
	} else if len(response.Results) == len(request.Settlements) {
		failure = nil
	}
	results := response.Results
	for _, one := range calls {
		if failure == nil {
			count := len(one.request.Settlements)
			one.response = &pb.SettleExpiredResponse{Results: results[:count]}
			results = results[count:]
		} else if failure.MaybeApplied || len(calls) == 1 {
			own := *failure
			one.failure = &own
		}
		close(one.done)
	}
}
