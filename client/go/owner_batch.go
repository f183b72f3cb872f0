package timecache

import (
	"context"
	"slices"
	"sync"

	pb "timecached.dev/client/go/gen/timecache/v1"
)

// batchPart is what of a batch goes by one request.
type batchPart struct {
	route   *ownerRoute // Nil: to the default node.
	request *pb.ExecuteRequest
	places  []int // Of its operations in the batch; nil: it is all of it.

	results []Result
	failure *Error
}

// executeAtOwners is Execute where calls go to the owners: what is of several goes in parts, at the
// same time. The operations of a part that fails have its failure, unless all fail.
func (c *Client) executeAtOwners(ctx context.Context, request *pb.ExecuteRequest, s *settings, isSafe bool) (results []Result, err error) {
	if err := s.conflict(); err != nil {
		return nil, err
	}
	ctx, cancel, span := c.begin(ctx, pb.TimeCacheService_Execute_FullMethodName, request, s)
	defer func() {
		cancel()
		span.End(err)
	}()
	parts := c.partsOf(request)
	if len(parts) > 1 && c.options.Tracing != nil {
		span = &lockedSpan{TracedSpan: span}
		ctx = context.WithValue(ctx, onRetry{}, span.Retry)
	}
	var others sync.WaitGroup
	for _, part := range parts[1:] {
		others.Go(func() { part.execute(ctx, c, c.attempts(span, s, isSafe)) })
	}
	parts[0].execute(ctx, c, c.attempts(span, s, isSafe))
	others.Wait()
	if failure := failureOf(parts); failure != nil {
		return nil, failure
	}
	if len(parts) == 1 {
		return parts[0].results, nil
	}
	results = make([]Result, len(request.Operations))
	for _, part := range parts {
		for i, place := range part.places {
			if part.failure != nil {
				results[place] = Result{Err: part.failure}
			} else {
				results[place] = part.results[i]
			}
		}
	}
	return results, nil
}

// lockedSpan is for several goroutines.
type lockedSpan struct {
	TracedSpan
	mu sync.Mutex
}

func (s *lockedSpan) Retry(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.TracedSpan.Retry(why)
}

// failureOf is that of the whole batch; nil: a part has succeeded.
func failureOf(parts []*batchPart) *Error {
	maybeApplied := false
	for _, part := range parts {
		if part.failure == nil {
			return nil
		}
		maybeApplied = maybeApplied || part.failure.MaybeApplied
	}
	failure := *parts[0].failure
	failure.MaybeApplied = maybeApplied
	return &failure
}

func (p *batchPart) execute(ctx context.Context, c *Client, attempts attempts) {
	defer p.route.leave()
	response, failure := persistUnary[pb.ExecuteResponse](ctx, c, p.route, pb.TimeCacheService_Execute_FullMethodName, p.request, attempts)
	if failure == nil {
		p.results, failure = toResults(p.request, response)
	}
	p.failure = failure
}

// partsOf divides a batch by owner. Their routes are entered. One that is all of one owner, or
// that no server takes, is one part as it is.
func (c *Client) partsOf(request *pb.ExecuteRequest) []*batchPart {
	now := c.owners.now()
	routes := c.knownOwners(now)
	if len(routes) == 0 || len(request.Operations) > MaxOperations {
		return []*batchPart{{request: request}}
	}
	if request.Atomic {
		return []*batchPart{{request: request, route: routeOfAll(request.Operations, routes).enter(now)}}
	}
	routeOf := func(operation *pb.Operation) *ownerRoute {
		return routes[partitionOf(keyOf(operation), len(routes))]
	}
	first := routeOf(request.Operations[0])
	if !slices.ContainsFunc(request.Operations, func(o *pb.Operation) bool { return routeOf(o) != first }) {
		return []*batchPart{{request: request, route: first.enter(now)}}
	}
	bytes := 0
	for _, operation := range request.Operations {
		bytes += bytesOf(operation)
	}
	if bytes > MaxRequestBytes {
		return []*batchPart{{request: request}}
	}
	return divide(request, routeOf, now)
}

// divide makes parts by route. Whether a node is reached is asked once, so that the operations of
// one key stay together.
func divide(request *pb.ExecuteRequest, routeOf func(*pb.Operation) *ownerRoute, now int64) []*batchPart {
	var parts []*batchPart
	add := func(route *ownerRoute) *batchPart {
		part := &batchPart{route: route, request: &pb.ExecuteRequest{Namespace: request.Namespace}}
		parts = append(parts, part)
		return part
	}
	byRoute := map[*ownerRoute]*batchPart{}
	for place, operation := range request.Operations {
		route := routeOf(operation)
		part := byRoute[route]
		if part == nil {
			if entered := route.enter(now); entered != nil {
				part = add(entered)
			} else if part = byRoute[nil]; part == nil {
				part = add(nil)
				byRoute[nil] = part
			}
			byRoute[route] = part
		}
		part.request.Operations = append(part.request.Operations, operation)
		part.places = append(part.places, place)
	}
	return parts
}

// routeOfAll is the one of all operations' partition; nil: they are in several.
func routeOfAll(operations []*pb.Operation, routes []*ownerRoute) *ownerRoute {
	partition := partitionOf(keyOf(operations[0]), len(routes))
	for _, operation := range operations[1:] {
		if partitionOf(keyOf(operation), len(routes)) != partition {
			return nil
		}
	}
	return routes[partition]
}
