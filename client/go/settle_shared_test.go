package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// settler answers a request when a test says so: with the numbers that are its tokens. One that
// has the token "bad" is refused.
type settler struct {
	pb.UnimplementedTimeCacheServiceServer
	begun, answer chan bool
	refusal       error

	mu    sync.Mutex
	sizes []int // Of the requests.
}

func (s *settler) SettleExpired(_ context.Context, request *pb.SettleExpiredRequest) (*pb.SettleExpiredResponse, error) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(request.Settlements))
	s.mu.Unlock()
	s.begun <- true
	<-s.answer
	response := &pb.SettleExpiredResponse{}
	for _, one := range request.Settlements {
		version, err := strconv.ParseUint(string(one.DeliveryToken), 10, 64)
		if err != nil {
			return nil, s.refusal
		}
		response.Results = append(response.Results, &pb.SettleResult{Version: version})
	}
	return response, nil
}

func settling(ctx context.Context, client *timecache.Client, tokens ...string) <-chan error {
	end := make(chan error, 1)
	go func() {
		var settlements []timecache.Settlement
		for _, token := range tokens {
			settlements = append(settlements, timecache.Settlement{DeliveryToken: token})
		}
		results, err := client.Settle(ctx, "g", settlements)
		for i, result := range results {
			if fmt.Sprint(result.Version) != tokens[i] {
				err = errors.Join(err, fmt.Errorf("%s got %d", tokens[i], result.Version))
			}
		}
		end <- err
	}()
	return end
}

func TestSettlementsOfOneGroupShareARequest(t *testing.T) {
	service := &settler{begun: make(chan bool, 10), answer: make(chan bool),
		refusal: status.FromProto(refusal(t, codes.InvalidArgument, timecache.InvalidField)).Err()}
	client := serve(t, service, timecache.Options{Timeout: patience})
	queued := func(count int) {
		eventually(t, func() bool { return timecache.QueuedSettlements(client, "g") == count })
	}
	first := settling(t.Context(), client, "1")
	receive(t, service.begun)
	ctx, cancel := context.WithCancel(t.Context())
	two, gone, three := settling(t.Context(), client, "2", "3"), settling(ctx, client, "9"), settling(t.Context(), client, "4")
	queued(3)
	cancel()
	err := receive(t, gone)
	refused(t, err, codes.Canceled, "")
	equal(t, "what was not sent may be applied", maybeApplied(t, err), false)
	service.answer <- true
	service.answer <- true
	for _, end := range []<-chan error{first, two, three} {
		equal(t, "error", receive(t, end), nil)
	}
	equal(t, "requests", service.sizes, []int{1, 3})

	// What makes the server refuse a request touches no other.
	first = settling(t.Context(), client, "1")
	eventually(t, func() bool { service.mu.Lock(); defer service.mu.Unlock(); return len(service.sizes) == 3 })
	bad, good := settling(t.Context(), client, "bad"), settling(t.Context(), client, "5")
	queued(2)
	close(service.answer)
	refused(t, receive(t, bad), codes.InvalidArgument, timecache.InvalidField)
	equal(t, "good", receive(t, good), nil)
	equal(t, "first", receive(t, first), nil)
}
