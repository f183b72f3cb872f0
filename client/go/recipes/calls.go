package recipes

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
)

// MayCall says whether this caller may call once more: limit times in a window, from all
// clients together. The window begins with the caller's first call, and lasts a bucket width
// of the namespace longer at most; a call that is refused does not make it longer. It is the
// entry calls/CALLER. One round trip. A call without an answer may have counted: decide
// whether to let it pass.
func MayCall(ctx context.Context, client *timecache.Client, caller string, limit int64, window time.Duration) (bool, error) {
	calls, err := client.Combine(ctx, "calls/"+caller, timecache.Add(1), timecache.TTL(window))
	return err == nil && calls.Result <= limit, err
}

// AnswerOptions are those of [AnswerOnce]; both are required.
type AnswerOptions struct {
	// WorkTime is how long the work may take. Remembered is how long its answer stays.
	WorkTime, Remembered time.Duration
}

// AnswerOnce returns the answer to a request, which is worked on once, however often it
// comes: it calls work in the call that comes first; later ones get the same answer for as
// long as it is remembered. It is in the entry request/REQUEST. Two round trips.
//
// Aborted: the request is being worked on, now or before a crash less than WorkTime ago: try
// again. A claim without an answer is such a crash, and so is work that fails: its error is
// returned. FailedPrecondition: the work took longer than WorkTime, and may have been done
// again.
func AnswerOnce(ctx context.Context, client *timecache.Client, request string, options AnswerOptions,
	work func(context.Context) ([]byte, error)) (answer []byte, err error) {
	key := "request/" + request
	claim, err := client.Put(ctx, key, nil, timecache.TTL(options.WorkTime), timecache.IfAbsent)
	if errors.Is(err, timecache.KeyExists) {
		entry, _, err := client.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if len(entry.Value) == 0 {
			return nil, &timecache.Error{Code: codes.Aborted, Message: "the request is being worked on"}
		}
		return entry.Value[1:], nil
	}
	if err == nil {
		answer, err = work(ctx)
	}
	if err != nil {
		return nil, err
	}
	_, err = client.Put(ctx, key, append([]byte("="), answer...), timecache.TTL(options.Remembered),
		timecache.IfVersion(claim.Version))
	if err != nil {
		return nil, err
	}
	return answer, nil
}
