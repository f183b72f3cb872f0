// Bench measures the client's throughput beside that of go-redis with a Redis server, both
// on this machine: 64 B values under 10,000 keys. It starts and ends the servers.
//
//	bench TIMECACHED REDIS-SERVER SECONDS
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
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
	depth = 100
	keys  = 10_000
)

var value = []byte(strings.Repeat("v", 64))

func key() string { return "key:" + strconv.Itoa(10_000_000+rand.IntN(keys)) }

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: bench TIMECACHED REDIS-SERVER SECONDS")
	}
	seconds, err := strconv.ParseFloat(os.Args[3], 64)
	if err == nil {
		err = run(os.Args[1], os.Args[2], time.Duration(seconds*float64(time.Second)))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// work does operations until the context ends, and counts them.
type work func(ctx context.Context, done *atomic.Int64) error

func run(timecached, redisServer string, duration time.Duration) error {
	ctx := context.Background()
	address, end, err := startTimecached(timecached)
	if err != nil {
		return err
	}
	defer end()
	client, err := timecache.NewClient(address, timecache.Options{Namespace: "bench"})
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.CreateNamespace(ctx, "bench", timecache.NamespaceOptions{TTL: new(time.Hour)}); err != nil {
		return err
	}
	redisAddress, endRedis, err := startRedis(redisServer)
	if err != nil {
		return err
	}
	defer endRedis()
	peer := redis.NewClient(&redis.Options{Addr: redisAddress, PoolSize: 16})
	defer peer.Close()

	set := func(ctx context.Context) error { return peer.Set(ctx, key(), value, time.Hour).Err() }
	get := func(ctx context.Context) error {
		if err := peer.Get(ctx, key()).Err(); err != redis.Nil {
			return err
		}
		return nil
	}
	put := func(ctx context.Context) error { _, err := client.Put(ctx, key(), value); return err }
	read := func(ctx context.Context) error { _, _, err := client.Get(ctx, key()); return err }
	setMany := func(p redis.Pipeliner, ctx context.Context) { p.Set(ctx, key(), value, time.Hour) }
	getMany := func(p redis.Pipeliner, ctx context.Context) { p.Get(ctx, key()) }
	putOne := func() timecache.Operation { return timecache.PutOperation(key(), value) }
	getOne := func() timecache.Operation { return timecache.GetOperation(key()) }

	fmt.Printf("| operations a second | timecached put | Redis set | timecached get | Redis get |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		name  string
		works [4]work
	}{
		{"unary, 1 at a time", [4]work{unary(put, 1), unary(set, 1), unary(read, 1), unary(get, 1)}},
		{"unary, 16 at a time", [4]work{unary(put, 16), unary(set, 16), unary(read, 16), unary(get, 16)}},
		{"batches of 100", [4]work{batches(client, putOne), redisBatches(peer, setMany), batches(client, getOne), redisBatches(peer, getMany)}},
		{"pipeline, 100 in flight", [4]work{piped(client, putOne), redisBatches(peer, setMany), piped(client, getOne), redisBatches(peer, getMany)}},
	} {
		fmt.Printf("| %s |", row.name)
		for _, work := range row.works {
			rate, err := measure(ctx, work, duration)
			if err != nil {
				return err
			}
			fmt.Printf(" %.0f |", rate)
		}
		fmt.Println()
	}
	return nil
}

// measure leaves out the first tenth.
func measure(ctx context.Context, do work, duration time.Duration) (rate float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	end := make(chan error, 1)
	go func() { end <- do(ctx, &done) }()
	time.Sleep(duration / 10)
	begin, before := time.Now(), done.Load()
	time.Sleep(duration)
	rate = float64(done.Load()-before) / time.Since(begin).Seconds()
	cancel()
	if err := <-end; err != nil && !errors.Is(err, context.Canceled) {
		return 0, err
	}
	return rate, nil
}

func unary(call func(context.Context) error, concurrency int) work {
	return func(ctx context.Context, done *atomic.Int64) error {
		var all sync.WaitGroup
		errs := make(chan error, concurrency)
		for range concurrency {
			all.Go(func() {
				for ctx.Err() == nil {
					// The end of the measurement does not cancel a call.
					if err := call(context.WithoutCancel(ctx)); err != nil {
						errs <- err
						return
					}
					done.Add(1)
				}
			})
		}
		all.Wait()
		close(errs)
		return <-errs
	}
}

func batches(client *timecache.Client, operation func() timecache.Operation) work {
	return func(ctx context.Context, done *atomic.Int64) error {
		for ctx.Err() == nil {
			batch := make([]timecache.Operation, depth)
			for i := range batch {
				batch[i] = operation()
			}
			results, err := client.Execute(context.WithoutCancel(ctx), batch)
			if err != nil {
				return err
			}
			for _, result := range results {
				if result.Err != nil {
					return result.Err
				}
			}
			done.Add(depth)
		}
		return nil
	}
}

func piped(client *timecache.Client, operation func() timecache.Operation) work {
	return func(ctx context.Context, done *atomic.Int64) error {
		pipeline := client.Pipeline(context.Background(), timecache.PipelineOptions{OperationsInFlight: depth})
		for ctx.Err() == nil {
			if err := pipeline.Add(operation(), func(result timecache.Result) {
				if result.Err == nil {
					done.Add(1)
				}
			}); err != nil {
				return err
			}
		}
		return pipeline.Close()
	}
}

func redisBatches(peer *redis.Client, add func(redis.Pipeliner, context.Context)) work {
	return func(ctx context.Context, done *atomic.Int64) error {
		for ctx.Err() == nil {
			batch := peer.Pipeline()
			for range depth {
				add(batch, ctx)
			}
			if _, err := batch.Exec(context.WithoutCancel(ctx)); err != nil && err != redis.Nil {
				return err
			}
			done.Add(depth)
		}
		return nil
	}
}

var started = regexp.MustCompile(`server_started .*?address=(\S+)`)

func startTimecached(program string) (address string, end func(), err error) {
	command := exec.Command(program, "--listen", "127.0.0.1:0")
	output, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return "", nil, err
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if match := started.FindStringSubmatch(lines.Text()); match != nil {
			go func() {
				for lines.Scan() {
				}
			}()
			return match[1], func() { stop(command) }, nil
		}
	}
	stop(command)
	return "", nil, fmt.Errorf("%s does not start", program)
}

func startRedis(program string) (address string, end func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	for range 200 {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address, func() { stop(command) }, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop(command)
	return "", nil, fmt.Errorf("%s does not start", program)
}

func stop(command *exec.Cmd) {
	command.Process.Signal(syscall.SIGTERM)
	command.Wait()
}
