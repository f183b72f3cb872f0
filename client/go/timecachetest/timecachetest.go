// Package timecachetest is for tests of what uses timecached: it runs a server, and moves
// the clock of one that was started with --virtual-clock, so that a test of "after 30
// minutes" takes a millisecond.
package timecachetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
	testingv1 "timecached.dev/client/go/gen/timecache/testing/v1"
)

// Clock moves the time of a server under --virtual-clock, which begins with
// 1970-01-01T00:00:00Z and never goes back. On a server with the real clock: Unimplemented.
// Safe for concurrent use.
type Clock struct {
	stub testingv1.VirtualClockServiceClient
}

// NewClock makes the clock of the client's server.
func NewClock(client *timecache.Client) *Clock {
	return &Clock{testingv1.NewVirtualClockServiceClient(client.Conn())}
}

// Advance moves the clock on, and returns its time. It answers once everything due has been
// swept and published, with a watermark at the new time: a test that reads its watch up to
// that watermark has seen all. InvalidArgument for a negative duration.
func (c *Clock) Advance(ctx context.Context, by time.Duration) (time.Time, error) {
	return c.advance(ctx, &testingv1.AdvanceRequest{Target: &testingv1.AdvanceRequest_By{By: durationpb.New(by)}})
}

// AdvanceTo is Advance to a time: InvalidArgument for one before now.
func (c *Clock) AdvanceTo(ctx context.Context, to time.Time) (time.Time, error) {
	return c.advance(ctx, &testingv1.AdvanceRequest{Target: &testingv1.AdvanceRequest_To{To: timestamppb.New(to)}})
}

func (c *Clock) advance(ctx context.Context, request *testingv1.AdvanceRequest) (time.Time, error) {
	response, err := c.stub.Advance(ctx, request)
	if err != nil {
		return time.Time{}, err
	}
	return response.Now.AsTime(), nil
}

// Now reads the clock.
func (c *Clock) Now(ctx context.Context) (time.Time, error) {
	response, err := c.stub.Now(ctx, &testingv1.NowRequest{})
	if err != nil {
		return time.Time{}, err
	}
	return response.Now.AsTime(), nil
}

// Server is a process of timecached.
type Server struct {
	// Address is where it listens.
	Address string

	t       testing.TB
	program string
	listen  []string // A flag and its value; none with a configuration.
	args    []string
	command *exec.Cmd
}

var started = regexp.MustCompile(`server_started .*?address=(\S+)`)

// Start runs a server on a free port of this machine, with these flags ("--virtual-clock"),
// until the test ends. The program is $TIMECACHED, or timecached in $PATH; without it the
// test is skipped.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartOn(t, "127.0.0.1:0", args...)
}

// StartOn is Start on an address: "host:port" or "unix:/path".
func StartOn(t testing.TB, address string, args ...string) *Server {
	t.Helper()
	return run(t, []string{"--listen", address}, args)
}

// StartConfigured is Start with a configuration file, which says on which address.
func StartConfigured(t testing.TB, file string, args ...string) *Server {
	t.Helper()
	return run(t, nil, append([]string{"--config", file}, args...))
}

func run(t testing.TB, listen, args []string) *Server {
	t.Helper()
	program, err := exec.LookPath(os.Getenv("TIMECACHED"))
	if err != nil {
		if program, err = exec.LookPath("timecached"); err != nil {
			t.Skip("no server: set TIMECACHED to the program")
		}
	}
	s := &Server{t: t, program: program, listen: listen, args: args}
	s.start()
	t.Cleanup(s.Kill)
	return s
}

// Client makes a client of the server, which is closed when the test ends.
func (s *Server) Client(options timecache.Options) *timecache.Client {
	s.t.Helper()
	client, err := timecache.NewClient(s.Address, options)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	return client
}

// Kill ends the process at once, as a crash does.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends it in good order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Restart starts it again, on the same address unless a file says which, after a Kill or a
// Stop.
func (s *Server) Restart() {
	s.t.Helper()
	if s.listen != nil {
		s.listen[1] = s.Address
	}
	s.start()
}

func (s *Server) start() {
	s.t.Helper()
	s.command = exec.Command(s.program, append(slices.Clone(s.listen), s.args...)...)
	log, err := s.command.StderrPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var said strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if match := started.FindStringSubmatch(lines.Text()); match != nil {
			s.Address = match[1]
			go io.Copy(io.Discard, log) // Else the server would wait for its log.
			return
		}
	}
	s.t.Fatalf("%s does not start:\n%s", s.program, said.String())
}

func (s *Server) end(signal syscall.Signal) {
	if s.command == nil {
		return
	}
	s.command.Process.Signal(signal)
	var exit *exec.ExitError
	if err := s.command.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Log(err)
	}
	s.command = nil
}
