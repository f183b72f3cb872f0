// Bench measures the client beside go-redis, for bench/clients/run.py, which says what the
// rows are.
//
//	bench ADDRESS REDIS_PORT SECONDS [ROW]...
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"timecached.dev/client/go"
)

const (
	keys  = 100_000
	depth = 100
	ttl   = 10 * time.Minute
)

var (
	value = []byte(strings.Repeat("v", 64))
	names [keys]string
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 {
		log.Fatal("usage: bench ADDRESS REDIS_PORT SECONDS [ROW]...")
	}
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	if err == nil {
		err = run(os.Args[1], os.Args[2], time.Duration(seconds*float64(time.Second)), os.Args[4:])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// call does so many operations from the key of this number on.
type call func(i int) error

func run(address, redisPort string, duration time.Duration, rows []string) error {
	for i := range names {
		names[i] = fmt.Sprintf("key-%012d", i)
	}
	ctx := context.Background()
	client, err := timecache.NewClient(address, timecache.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	peer := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + redisPort})
	defer peer.Close()

	put := func(i int) error {
		_, err := client.Put(ctx, names[i], value, timecache.TTL(ttl))
		return err
	}
	get := func(i int) error { _, _, err := client.Get(ctx, names[i]); return err }
	unaryPut := func(i int) error {
		_, err := client.Put(ctx, names[i], value, timecache.TTL(ttl), timecache.Batching(false))
		return err
	}
	unaryGet := func(i int) error { _, _, err := client.Get(ctx, names[i], timecache.Batching(false)); return err }
	set := func(i int) error { return peer.Set(ctx, names[i], value, ttl).Err() }
	read := func(i int) error { return found(peer.Get(ctx, names[i]).Err()) }
	sets := redisBatch(ctx, peer, func(p redis.Pipeliner, key string) { p.Set(ctx, key, value, ttl) })
	reads := redisBatch(ctx, peer, func(p redis.Pipeliner, key string) { p.Get(ctx, key) })
	putOne := func(key string) timecache.Operation {
		return timecache.PutOperation(key, value, timecache.TTL(ttl))
	}
	getOne := func(key string) timecache.Operation { return timecache.GetOperation(key) }
	pipeline := client.Pipeline(ctx, timecache.PipelineOptions{})

	for _, row := range []struct {
		name              string
		concurrency, each int
		ours, peers       call
	}{
		{"put 1", 1, 1, put, set},
		{"get 1", 1, 1, get, read},
		{"put 16", 16, 1, put, set},
		{"get 16", 16, 1, get, read},
		{"put 64", 64, 1, put, set},
		{"get 64", 64, 1, get, read},
		{"put 256", 256, 1, put, set},
		{"get 256", 256, 1, get, read},
		{"put unary 16", 16, 1, unaryPut, set},
		{"get unary 16", 16, 1, unaryGet, read},
		{"put batch", 1, depth, batch(ctx, client, putOne), sets},
		{"get batch", 1, depth, batch(ctx, client, getOne), reads},
		{"put pipeline", 1, depth, piped(pipeline, putOne), sets},
		{"get pipeline", 1, depth, piped(pipeline, getOne), reads},
	} {
		if len(rows) > 0 && !slices.Contains(rows, row.name) {
			continue
		}
		fmt.Print(row.name)
		for _, call := range []call{row.ours, row.peers} {
			if _, _, err := measure(call, row.concurrency, row.each, duration/4); err != nil {
				return err
			}
		}
		for _, call := range []call{row.ours, row.peers} {
			rate, cpu, err := measure(call, row.concurrency, row.each, duration)
			if err != nil {
				return err
			}
			fmt.Printf("\t%.3f\t%.3f", rate, cpu)
		}
		fmt.Println()
	}
	return pipeline.Close()
}

// measure says how many operations there were in a second, and how many microseconds of this
// process's CPU one took.
func measure(do call, concurrency, each int, duration time.Duration) (rate, cpu float64, err error) {
	var all sync.WaitGroup
	var done atomic.Int64
	errs := make(chan error, concurrency)
	begin, used := time.Now(), processTime()
	for worker := range concurrency {
		all.Go(func() {
			for i := worker * keys / concurrency; time.Since(begin) < duration; i += each {
				if err := do(i % keys); err != nil {
					errs <- err
					return
				}
				done.Add(int64(each))
			}
		})
	}
	all.Wait()
	close(errs)
	count := float64(done.Load())
	return count / time.Since(begin).Seconds(), float64((processTime() - used).Microseconds()) / count, <-errs
}

func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// found takes a miss for what it is.
func found(err error) error {
	if err == redis.Nil {
		return nil
	}
	return err
}

func batch(ctx context.Context, client *timecache.Client, operation func(string) timecache.Operation) call {
	return func(i int) error {
		operations := make([]timecache.Operation, depth)
		for j := range operations {
			operations[j] = operation(names[(i+j)%keys])
		}
		results, err := client.Execute(ctx, operations)
		for _, result := range results {
			if result.Err != nil {
				return result.Err
			}
		}
		return err
	}
}

func piped(pipeline *timecache.Pipeline, operation func(string) timecache.Operation) call {
	return func(i int) error {
		var failure error
		for j := range depth {
			if err := pipeline.Add(operation(names[(i+j)%keys]), func(result timecache.Result) {
				if result.Err != nil {
					failure = result.Err
				}
			}); err != nil {
				return err
			}
		}
		if err := pipeline.Wait(); err != nil {
			return err
		}
		return failure
	}
}

func redisBatch(ctx context.Context, peer *redis.Client, add func(redis.Pipeliner, string)) call {
	return func(i int) error {
		batch := peer.Pipeline()
		for j := range depth {
			add(batch, names[(i+j)%keys])
		}
		_, err := batch.Exec(ctx)
		return found(err)
	}
}
