package recipes

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"timecached.dev/client/go"
)

// maxLockTries: a lock that changes hands so often while it is asked for is taken.
const maxLockTries = 4

// LockOptions are those of a [Lock]. The zero value is good.
type LockOptions struct {
	// TTL is how long a lease lasts that is not renewed: 1 ms to the namespace's max_ttl. 0:
	// 10 s. Another owner gets the lock at most a bucket width of the namespace later.
	TTL time.Duration
	// Owner is this owner's name, for people who read the entry: at most some 100 B.
	Owner string
	// Recheck: Acquire tries at least this often while it waits, for a lock that ended
	// without an event: removed by hand, or with its namespace. 0: 5 s.
	Recheck time.Duration
	// OnLost is called once for each lease that ends without Release: as soon as a call
	// finds it another's, by that call, and at the latest when Remaining is over, in a
	// goroutine of its own. The lease is then given up: Renew returns false. Stop the work
	// that the lock protects.
	OnLost func()
}

// Lock is a contender for a lock that processes compete for: a lease with a fencing token,
// in an entry of the client's namespace.
//
//	lock := recipes.NewLock(client, "lock/report", recipes.LockOptions{})
//	if token, err := lock.Acquire(ctx); err == nil {
//		storage.Write(report, token)
//		lock.Release(ctx)
//	}
//
// Guarantee: of two owners, the later one has the larger token. A lease is not mutual
// exclusion by itself: an owner that is suspended beyond its time to live notices too late.
// What the lock protects must remember the largest token that it has seen, and refuse
// smaller ones. Holds over restarts in a durable namespace; in another one a restart frees
// the lock, and tokens still grow.
//
// A call without an answer ([timecache.Error.MaybeApplied]) may have happened. After an
// acquisition the next TryAcquire of the same Lock finds its own mark in the entry and takes
// the lease over; without one the lock is free after at most TTL. Renew and Release again.
//
// Cost: one round trip to acquire a lock that is free, three for one that was just released,
// two to find it taken; one to renew and to release. A waiter has one watch, and tries when
// the lock expires. A release leaves an empty value that lives 1 ms: the lock is free at once
// for the next attempt, and waiters receive the expiry at most a bucket width later. So give
// locks a namespace of narrow buckets, which must not be sliding: reads would renew leases.
// Waiters are not ordered.
//
// One call at a time: each contender has a Lock of its own. Token and Remaining may be called
// by any goroutine.
type Lock struct {
	client  *timecache.Client
	key     string
	options LockOptions
	mark    []byte // The entry's value while this Lock has it: no other Lock writes it.

	mu        sync.Mutex
	token     uint64
	safeUntil time.Time
	watched   bool // Whether a loss is to be reported.
	lease     int  // Changes with each renewal and end.
}

// NewLock makes a contender; no call.
func NewLock(client *timecache.Client, key string, options LockOptions) *Lock {
	if options.TTL == 0 {
		options.TTL = 10 * time.Second
	}
	if options.Recheck == 0 {
		options.Recheck = 5 * time.Second
	}
	random := make([]byte, 16)
	rand.Read(random)
	mark := hex.EncodeToString(random)
	if options.Owner != "" {
		mark = options.Owner + " " + mark
	}
	return &Lock{client: client, key: key, options: options, mark: []byte(mark)}
}

// Token is the lease's, as last known here; 0: it has none.
func (l *Lock) Token() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// Remaining is how long the lease lasts for certain, on this machine's clock, from before
// the last successful call was sent; 0 when it may be over.
func (l *Lock) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == 0 {
		return 0
	}
	return max(0, time.Until(l.safeUntil))
}

// TryAcquire returns the fencing token; 0: another owner has the lock. Renews a lease that
// this Lock has.
func (l *Lock) TryAcquire(ctx context.Context) (token uint64, err error) {
	for range maxLockTries {
		if token, err = l.put(ctx, timecache.IfAbsent); token != 0 || err != nil {
			return token, err
		}
		entry, found, err := l.client.Get(ctx, l.key)
		if err != nil {
			return 0, err
		}
		switch {
		case !found:
			continue
		case bytes.Equal(entry.Value, l.mark):
			token, err = l.touch(ctx, entry.Version, false)
		case len(entry.Value) == 0: // Released.
			token, err = l.put(ctx, timecache.IfVersion(entry.Version))
		default:
			l.lose(0)
			return 0, nil
		}
		if token != 0 || err != nil {
			return token, err
		}
	}
	l.lose(0)
	return 0, nil
}

// Acquire is TryAcquire, but waits for the lock, until the context ends: with its error.
func (l *Lock) Acquire(ctx context.Context) (token uint64, err error) {
	if token, err = l.TryAcquire(ctx); token != 0 || err != nil {
		return token, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	free, end := make(chan struct{}, 1), make(chan error, 1)
	go func() { end <- l.watch(watching, free) }()
	recheck := time.NewTicker(l.options.Recheck)
	defer recheck.Stop()
	for {
		select {
		case err := <-end:
			return 0, err
		case <-free:
		case <-recheck.C:
		}
		if token, err = l.TryAcquire(ctx); token != 0 || err != nil {
			return token, err
		}
	}
}

// watch says when the lock may be free.
func (l *Lock) watch(ctx context.Context, free chan<- struct{}) error {
	// A lock that ends before the watch stands has no event: its first batch is a reason.
	stands := false
	for batch, err := range l.client.Watch(ctx, timecache.WatchOptions{KeyPrefix: l.key, KeysOnly: true}) {
		if err != nil {
			return err
		}
		mayBeFree := !stands || batch.Lost > 0 || batch.LogChanged
		for _, event := range batch.Events {
			mayBeFree = mayBeFree || event.Key == l.key
		}
		stands = true
		if mayBeFree {
			select {
			case free <- struct{}{}:
			default:
			}
		}
	}
	return ctx.Err()
}

// Renew renews the lease; its token does not change. False: it is not held, or was lost.
func (l *Lock) Renew(ctx context.Context) (held bool, err error) {
	token := l.Token()
	if token == 0 {
		return false, nil
	}
	token, err = l.touch(ctx, token, true)
	return token != 0, err
}

// Release frees the lock, if this owner still has it. False: it did not.
func (l *Lock) Release(ctx context.Context) (held bool, err error) {
	l.mu.Lock()
	token := l.token
	l.watched = false
	l.mu.Unlock()
	if token == 0 {
		return false, nil
	}
	_, err = l.client.Put(ctx, l.key, nil, timecache.TTL(time.Millisecond), timecache.IfVersion(token))
	if err != nil && !isUnmet(err) {
		return false, err
	}
	l.lose(0)
	return err == nil, nil
}

// put returns 0 where the key is there, or not with this version.
func (l *Lock) put(ctx context.Context, condition timecache.PutOption) (token uint64, err error) {
	sentAt := time.Now()
	put, err := l.client.Put(ctx, l.key, l.mark, timecache.TTL(l.options.TTL), condition)
	if err != nil {
		if isUnmet(err) {
			err = nil
		}
		return 0, err
	}
	return l.own(put.Version, sentAt, false), nil
}

// touch begins the lease's time anew; that of an acquisition that was not answered is not
// known.
func (l *Lock) touch(ctx context.Context, version uint64, renews bool) (token uint64, err error) {
	sentAt := time.Now()
	_, _, err = l.client.Touch(ctx, l.key, timecache.IfVersion(version))
	if isUnmet(err) {
		l.lose(0)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return l.own(version, sentAt, renews), nil
}

func (l *Lock) own(version uint64, sentAt time.Time, renews bool) (token uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if renews && l.token == 0 {
		return 0 // Meanwhile OnLost was called.
	}
	l.token, l.safeUntil = version, sentAt.Add(l.options.TTL)
	if l.options.OnLost != nil {
		l.lease++
		l.watched = true
		lease := l.lease
		time.AfterFunc(time.Until(l.safeUntil), func() { l.lose(lease) })
	}
	return version
}

// lose ends this lease, unless it was renewed, or has ended; 0: whichever it is.
func (l *Lock) lose(lease int) {
	l.mu.Lock()
	if lease != 0 && lease != l.lease {
		l.mu.Unlock()
		return
	}
	reports := l.watched
	l.token, l.watched = 0, false
	l.lease++
	l.mu.Unlock()
	if reports {
		l.options.OnLost()
	}
}
