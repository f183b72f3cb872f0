package timecache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"timecached.dev/client/go"
	"timecached.dev/client/go/recipes"
	"timecached.dev/client/go/timecachetest"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// samples returns the README's programs, and its other pieces of Go.
func samples(t *testing.T) (programs, pieces []string) {
	t.Helper()
	for _, match := range goBlock.FindAllStringSubmatch(string(must(os.ReadFile("README.md"))(t)), -1) {
		if strings.HasPrefix(match[1], "package main\n") {
			programs = append(programs, match[1])
		} else {
			pieces = append(pieces, match[1])
		}
	}
	return programs, pieces
}

// install makes a module that uses this one, as the README says, and builds a program in it.
func install(t *testing.T, program string) string {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	here := must(os.Getwd())(t)
	for _, args := range [][]string{
		{"mod", "init", "example.test/program"},
		{"mod", "edit", "-replace", "timecached.dev/client/go=" + here},
		{"mod", "tidy"},
		{"build", "-o", "program", "."},
	} {
		command := exec.Command("go", args...)
		command.Dir = directory
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return filepath.Join(directory, "program")
}

func TestReadmeQuickStart(t *testing.T) {
	programs, _ := samples(t)
	program := install(t, programs[0])
	server := timecachetest.Start(t)
	out, err := exec.Command(program, "-server", server.Address).CombinedOutput()
	if want := "true basket=3 <nil>\nexpired: session:7 basket=3\n"; string(out) != want || err != nil {
		t.Errorf("got %v and\n%s, want\n%s", err, out, want)
	}
}

func TestReadmeWorker(t *testing.T) {
	programs, _ := samples(t)
	if len(programs) != 2 {
		t.Fatal("the README has another number of programs:", len(programs))
	}
	client := timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{Namespace: "orders"})
	must(client.CreateNamespace(t.Context(), "orders", timecache.NamespaceOptions{}))(t)
	command := exec.Command(install(t, programs[1]), "-server", client.Conn().(interface{ Target() string }).Target())
	out := bufio.NewReader(must(command.StdoutPipe())(t))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Process.Kill()
	joined(t, client, "cancel")
	must(client.Put(t.Context(), "order:17", nil))(t)
	must(timecachetest.NewClock(client).Advance(t.Context(), time.Minute))(t)
	equal(t, "line", must(out.ReadString('\n'))(t), "not paid in time: order:17\n")
	command.Process.Signal(syscall.SIGTERM)
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	settled(t, client, "cancel")
}

// The pieces stand here as they stand in the README, and are run.
func TestReadmePieces(t *testing.T) {
	self := string(must(os.ReadFile("readme_test.go"))(t))
	dedented := regexp.MustCompile(`(?m)^\t`).ReplaceAllString(self, "")
	_, pieces := samples(t)
	for _, piece := range pieces {
		if !strings.Contains(dedented, piece) {
			t.Errorf("not run:\n%s", piece)
		}
	}
	equal(t, "pieces", len(pieces), 7)

	server := timecachetest.Start(t, "--virtual-clock")
	client := server.Client(timecache.Options{Namespace: "orders"})
	must(client.CreateNamespace(t.Context(), "orders", timecache.NamespaceOptions{}))(t)
	if err := readmeCalls(t.Context(), client); err != nil {
		t.Error(err)
	}
	refused(t, readmeErrors(t.Context(), client), codes.FailedPrecondition, timecache.KeyExists)
	locks := client.In("default")
	written := uint64(0)
	write := func(ctx context.Context, token uint64) error {
		entry, _, err := locks.Get(ctx, "lock/report")
		written = entry.Version
		if err == nil && token != written {
			err = fmt.Errorf("written with %d", token)
		}
		return err
	}
	if err := readmeLock(t.Context(), locks, write); err != nil || written == 0 {
		t.Error(err)
	}
	if err := readmeMany(t.Context(), client); err != nil {
		t.Error(err)
	}
	if got := must(client.Size(t.Context()))(t).Entries; got != 100_004 { // And "order:17", "hits", "a", "c".
		t.Error("entries:", got)
	}

	clock := timecachetest.NewClock(client)
	first := read(t, client.Watch(t.Context(), timecache.WatchOptions{})).batch().ResumeToken
	now := must(clock.Advance(t.Context(), time.Hour))(t)
	ctx, stop := context.WithCancel(t.Context())
	var keys []string
	err := readmeWatch(ctx, client, first, func(event timecache.ExpiredEvent) { keys = append(keys, event.Key) },
		func([]byte) {
			if len(keys) > 100_000 {
				stop()
			}
		})
	if !errors.Is(err, context.Canceled) {
		t.Error(now, err)
	}
	stop()

	a := newAuthority(t)
	a.sign("client", "x.example")
	a.text("ops.token", "t")
	t.Chdir(a.directory)
	if err := readmeTLS(); err != nil {
		t.Error(err)
	}
}

func TestReadmeTest(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	client := server.Client(timecache.Options{})
	clock := timecachetest.NewClock(client)
	client.Put(t.Context(), "k", []byte("v"), timecache.TTL(15*time.Minute))
	clock.Advance(t.Context(), 16*time.Minute)
	if found, err := client.Contains(t.Context(), "k"); found || err != nil {
		t.Error("it should be gone", err)
	}
}

func readmeCalls(ctx context.Context, client *timecache.Client) error {
	put, err := client.Put(ctx, "order:17", []byte(`{"total":42}`), timecache.TTL(15*time.Minute), timecache.IfAbsent)
	if err != nil {
		return err
	}
	_, err = client.Put(ctx, "order:17", []byte(`{"total":43}`), timecache.IfVersion(put.Version), timecache.KeepDeadline)
	if err != nil {
		return err
	}
	sum, err := client.Combine(ctx, "hits", timecache.Add(1), timecache.RequestID("req-9"))
	if err != nil {
		return err
	}
	fmt.Println(sum.Result)
	for entry, err := range client.Scan(ctx, timecache.Prefix("order:")) {
		if err != nil {
			return err
		}
		var order struct{ Total int }
		if err := entry.JSON(&order); err != nil {
			return err
		}
		fmt.Println(entry.Key, order.Total, entry.Deadline)
	}
	return nil
}

func readmeErrors(ctx context.Context, client *timecache.Client) error {
	_, err := client.Put(ctx, "order:17", nil, timecache.IfAbsent)
	if errors.Is(err, timecache.KeyExists) {
		fmt.Println("somebody was faster")
	}
	var failure *timecache.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Code, failure.Reason, failure.Violations, failure.RetryDelay, failure.RequestID)
		fmt.Println("may have been done all the same:", failure.MaybeApplied)
	}
	return err
}

func readmeLock(ctx context.Context, client *timecache.Client, write func(context.Context, uint64) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lock := recipes.NewLock(client, "lock/report", recipes.LockOptions{Owner: "worker-a", OnLost: stop})
	token, err := lock.Acquire(ctx)
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	// Storage that refuses smaller tokens than the largest that it has seen is safe.
	return write(ctx, token)
}

func readmeMany(ctx context.Context, client *timecache.Client) error {
	results, err := client.Execute(ctx, []timecache.Operation{
		timecache.PutOperation("a", []byte("1")),
		timecache.GetOperation("b"),
	})
	if err != nil {
		return err
	}
	fmt.Println(results[0].Version, results[1].Found)

	// All or none: c is put if a still has this version.
	_, err = client.Execute(ctx, []timecache.Operation{
		timecache.ContainsOperation("a", timecache.IfVersion(results[0].Version)),
		timecache.PutOperation("c", []byte("2")),
	}, timecache.Atomic)
	if err != nil {
		return err
	}

	pipeline := client.Pipeline(ctx, timecache.PipelineOptions{})
	for i := range 100_000 {
		err := pipeline.Add(timecache.PutOperation(strconv.Itoa(i), nil), func(result timecache.Result) {
			if result.Err != nil {
				fmt.Println(result.Err)
			}
		})
		if err != nil {
			break // The stream has ended: Close says why.
		}
	}
	if err := pipeline.Close(); err != nil {
		return err
	}
	return nil
}

func readmeWatch(ctx context.Context, client *timecache.Client, stored []byte, handle func(timecache.ExpiredEvent),
	store func([]byte)) error {
	options := timecache.WatchOptions{ResumeTokens: map[string][]byte{"orders": stored}}
	for batch, err := range client.Watch(ctx, options) {
		if err != nil {
			return err
		}
		if batch.Lost > 0 || batch.LogChanged {
			fmt.Println("events were missed:", batch.Lost, batch.LogChanged, batch.MissedAfter)
		}
		for _, event := range batch.Events {
			handle(event)
		}
		store(batch.ResumeToken)
	}
	return nil
}

func readmeTLS() error {
	client, err := timecache.NewClient("cache.example:7171", timecache.Options{
		TLS:       &timecache.TLSFiles{CA: "ca.crt", Certificate: "client.crt", Key: "client.key"},
		TokenFile: "ops.token",
	})
	if err != nil {
		return err
	}
	return client.Close()
}
