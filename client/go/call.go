package timecache

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// Whether a call is safe to repeat: see [RetryPolicy].
const (
	safe = true
	once = false
)

// call does the attempts of one unary call. Nil with an error.
func call[Response any](ctx context.Context, c *Client, method string, request any, s *settings,
	isSafe bool) (answer *Response, err error) {
	if err := s.conflict(); err != nil {
		return nil, err
	}
	ctx, cancel, span := c.begin(ctx, method, request, s)
	defer func() {
		cancel()
		span.End(err)
	}()
	answer, failure := persistUnary[Response](ctx, c, nil, method, request, c.attempts(span, s, isSafe))
	if failure != nil {
		return nil, failure
	}
	return answer, nil
}

// begin gives a unary call its span, its metadata and its deadline.
func (c *Client) begin(ctx context.Context, method string, request any, s *settings) (
	context.Context, context.CancelFunc, TracedSpan) {
	ctx, span := c.startCall(ctx, method, request)
	ctx, cancel := c.withDeadline(s.outgoing(ctx))
	c.keepTraceparent(ctx, request, s)
	return ctx, cancel, span
}

// persistUnary does the attempts of a unary call, the first one at the owner, if there is a route.
func persistUnary[Response any](ctx context.Context, c *Client, route *ownerRoute, method string, request any,
	attempts attempts) (*Response, *Error) {
	for {
		begun := time.Now()
		response := new(Response)
		failure := route.or(c).unary(ctx, method, request, response)
		if failure == nil {
			return response, nil
		}
		if !attempts.elsewhere(&route, failure) && !attempts.again(ctx, begun, failure) {
			return nil, failure
		}
	}
}

// unary does one attempt of a call by its own RPC.
func (c *Client) unary(ctx context.Context, method string, request, response any) *Error {
	var trailer metadata.MD
	var server peer.Peer
	err := c.conn.Invoke(ctx, method, request, response, grpc.StaticMethod(), grpc.Trailer(&trailer), grpc.Peer(&server))
	if err == nil {
		return nil
	}
	failure := c.failure(err, trailer)
	if c.conn.clientConn() != nil && server.Addr == nil {
		failure.MaybeApplied = false // There was no connection.
	}
	return failure
}

// attempts of one call.
type attempts struct {
	client       *Client
	span         TracedSpan
	left         int
	pauses       pauses
	owner        pauses // While no owner is known.
	maybeApplied bool
	hasNewToken  bool
}

func (c *Client) attempts(span TracedSpan, s *settings, isSafe bool) attempts {
	a := attempts{client: c, span: span, left: 1, owner: c.conn.failover().pauses,
		pauses: pauses{min: c.options.Retry.MinPause, max: c.options.Retry.MaxPause}}
	if isSafe || s.repeatable || len(s.idempotencyID) > 0 {
		a.left = c.options.Retry.MaxAttempts
	}
	return a
}

// elsewhere takes a failure of a call that went to the owner, if it did: from now on it goes to the
// default node. Says whether it does so at once, as a part of the same attempt.
func (a *attempts) elsewhere(route **ownerRoute, failure *Error) bool {
	isAtOnce := (*route).failed(failure)
	*route = nil
	if isAtOnce {
		a.span.Retry(failure)
	}
	return isAtOnce
}

// again says, after a pause, whether there is another attempt. begun: when the last one was,
// or the stream that it went on. The failure takes what the attempts before may have done.
func (a *attempts) again(ctx context.Context, begun time.Time, failure *Error) bool {
	a.maybeApplied = a.maybeApplied || failure.MaybeApplied
	failure.MaybeApplied = a.maybeApplied
	// The server refused it before it did anything.
	if hasOther, _ := a.client.token.afterRefusal(begun, failure); hasOther && !a.hasNewToken {
		a.hasNewToken = true
		a.span.Retry(failure)
		return true
	}
	if failure.Reason == NotOwner && sleep(ctx, a.owner.next()) {
		a.span.Retry(failure)
		return true
	}
	a.left--
	if a.left <= 0 || !a.client.mayComeBack(failure) || !sleep(ctx, a.pauses.next()) {
		// What the server has answered stands.
		if ctx.Err() == context.Canceled && failure.connectionLost() {
			*failure = *newError(ctx.Err(), nil)
			failure.MaybeApplied = a.maybeApplied
		}
		return false
	}
	a.span.Retry(failure)
	return true
}

// do does one operation: on the stream that calls share, or by its own RPC, the method.
func (c *Client) do(ctx context.Context, method string, operation *pb.Operation, s *settings) Result {
	if err := s.conflict(); err != nil {
		return Result{Err: err}
	}
	route := c.enterOwner(operation)
	defer route.leave()
	ctx, span := route.or(c).startSpan(ctx, method, c.options.Namespace)
	if c.tracesEntries(s) {
		c.keepTraceparent(s.outgoing(ctx), requestOf(operation), s)
	}
	var answer *pb.OperationResult
	var opened time.Time
	var failure *Error
	begun, shares := time.Now(), c.shares(ctx, operation, s)
	if shares {
		answer, opened, failure = route.or(c).share(ctx, operation, c.options.Timeout)
	}
	if answer == nil {
		if _, has := ctx.Deadline(); !has && c.options.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, begun.Add(c.options.Timeout))
			defer cancel()
		}
		attempts := c.attempts(span, s, isSafe(operation))
		answer, failure = c.persist(s.outgoing(ctx), method, operation, attempts, route, shares, opened, failure)
	}
	if failure != nil {
		span.End(failure)
		return Result{Err: failure}
	}
	span.End(nil)
	return toResult(operation, answer)
}

// persist does the further attempts of an operation, or all, if none has failed yet. route: of the
// first one; begun: as in again.
func (c *Client) persist(ctx context.Context, method string, operation *pb.Operation, attempts attempts,
	route *ownerRoute, shares bool, begun time.Time, failure *Error) (*pb.OperationResult, *Error) {
	for {
		if shares && failure.wantsUnary() {
			shares = false
		} else if failure != nil && !attempts.elsewhere(&route, failure) && !attempts.again(ctx, begun, failure) {
			return nil, failure
		}
		var answer *pb.OperationResult
		if shares {
			answer, begun, failure = route.or(c).share(ctx, operation, 0)
		} else {
			begun = time.Now()
			request, response, result := unaryOf(operation, c.options.Namespace)
			answer, failure = result, route.or(c).unary(ctx, method, request, response)
		}
		if failure == nil {
			return answer, nil
		}
	}
}

// unaryOf has the request of an operation's own RPC, and where its response goes to.
func unaryOf(operation *pb.Operation, namespace string) (request, response any, result *pb.OperationResult) {
	result = &pb.OperationResult{}
	switch o := operation.Request.(type) {
	case *pb.Operation_Put:
		o.Put.Namespace = namespace
		answer := &pb.OperationResult_Put{Put: &pb.PutResponse{}}
		request, response, result.Result = o.Put, answer.Put, answer
	case *pb.Operation_Get:
		o.Get.Namespace = namespace
		answer := &pb.OperationResult_Get{Get: &pb.GetResponse{}}
		request, response, result.Result = o.Get, answer.Get, answer
	case *pb.Operation_Remove:
		o.Remove.Namespace = namespace
		answer := &pb.OperationResult_Remove{Remove: &pb.RemoveResponse{}}
		request, response, result.Result = o.Remove, answer.Remove, answer
	case *pb.Operation_Contains:
		o.Contains.Namespace = namespace
		answer := &pb.OperationResult_Contains{Contains: &pb.ContainsResponse{}}
		request, response, result.Result = o.Contains, answer.Contains, answer
	case *pb.Operation_Touch:
		o.Touch.Namespace = namespace
		answer := &pb.OperationResult_Touch{Touch: &pb.TouchResponse{}}
		request, response, result.Result = o.Touch, answer.Touch, answer
	case *pb.Operation_Append:
		o.Append.Namespace = namespace
		answer := &pb.OperationResult_Append{Append: &pb.AppendResponse{}}
		request, response, result.Result = o.Append, answer.Append, answer
	case *pb.Operation_Combine:
		o.Combine.Namespace = namespace
		answer := &pb.OperationResult_Combine{Combine: &pb.CombineResponse{}}
		request, response, result.Result = o.Combine, answer.Combine, answer
	case *pb.Operation_Gather:
		o.Gather.Namespace = namespace
		answer := &pb.OperationResult_Gather{Gather: &pb.GatherResponse{}}
		request, response, result.Result = o.Gather, answer.Gather, answer
	}
	return request, response, result
}
