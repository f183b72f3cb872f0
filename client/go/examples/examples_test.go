package examples

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"timecached.dev/client/go"
	"timecached.dev/client/go/timecachetest"
)

// program is an example that runs.
type program struct {
	t       *testing.T
	command *exec.Cmd
	in      io.Writer
	out     *bufio.Reader
}

// build makes the example's program.
func build(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func start(t *testing.T, path string, args ...string) *program {
	t.Helper()
	p := &program{t: t, command: exec.Command(path, args...)}
	out, err := p.command.StdoutPipe()
	if err == nil {
		p.out = bufio.NewReader(out)
		p.in, err = p.command.StdinPipe()
	}
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.command.Process.Kill() })
	return p
}

// line reads a line, and expects it unless want is empty.
func (p *program) line(want string) string {
	p.t.Helper()
	got, err := p.out.ReadString('\n')
	got = strings.TrimSuffix(got, "\n")
	if err != nil || want != "" && got != want {
		p.t.Fatalf("expected %q, came %q, %v", want, got, err)
	}
	return got
}

// end waits for it to end in good order, after a signal if there is one.
func (p *program) end(signal syscall.Signal) {
	p.t.Helper()
	if signal != 0 {
		p.command.Process.Signal(signal)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Error(err)
	}
}

func joined(t *testing.T, client *timecache.Client, group string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		described, err := client.GetGroup(t.Context(), group, timecache.IncludeStatistics)
		if err == nil && described.Statistics.GetMembers() > 0 {
			return
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatal("no member within 10 s: ", err)
		}
	}
}

func TestOrders(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	client := server.Client(timecache.Options{Namespace: "orders"})
	path := build(t, "orders")
	orders := func(args ...string) string {
		out, _ := exec.Command(path, append([]string{"-server", server.Address}, args...)...).CombinedOutput()
		return string(out)
	}
	for _, step := range []struct{ args, out string }{
		{"place 17 42", ""}, {"place 18 43", ""}, {"place 17 1", "order 17 has been placed\n"},
		{"pay 18", ""}, {"pay 18", "order 18 has been paid, or was cancelled\n"},
	} {
		if out := orders(strings.Fields(step.args)...); out != step.out {
			t.Errorf("orders %s: %s", step.args, out)
		}
	}
	worker := start(t, path, "-server", server.Address, "work")
	joined(t, client, "cancel")
	if _, err := timecachetest.NewClock(client).Advance(t.Context(), 16*time.Minute); err != nil {
		t.Fatal(err)
	}
	worker.line("cancelled 17: 42 was not paid")
	worker.end(syscall.SIGTERM)
	group, err := client.GetGroup(t.Context(), "cancel", timecache.IncludeStatistics)
	if err != nil || group.Statistics.GetAcked() != 1 || group.Statistics.GetBacklog() != 0 {
		t.Error(group, err)
	}
}

func TestSessions(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	clock := timecachetest.NewClock(server.Client(timecache.Options{}))
	advance := func(by time.Duration) {
		t.Helper()
		if _, err := clock.Advance(t.Context(), by); err != nil {
			t.Fatal(err)
		}
	}
	sessions := start(t, build(t, "sessions"), "-server", server.Address)
	say := func(line string) { io.WriteString(sessions.in, line+"\n") }
	say("login ann")
	ann := sessions.line("")
	say("login bob")
	bob := sessions.line("")
	say("visit " + ann + " /")
	sessions.line("ann [/]")
	advance(20 * time.Minute)
	say("visit " + ann + " /tea")
	sessions.line("ann [/ /tea]")
	advance(20 * time.Minute)
	sessions.line("bob has left after 0 pages")
	say("visit " + bob + " /")
	sessions.line("no such session")
	advance(20 * time.Minute)
	sessions.line("ann has left after 2 pages")
	say("nonsense")
	sessions.line("expected login USER, visit ID PAGE or logout ID")
	sessions.in.(io.Closer).Close()
	sessions.end(0)
}

func TestMember(t *testing.T) {
	server := timecachetest.Start(t, "--virtual-clock")
	client := server.Client(timecache.Options{})
	path := build(t, "member")
	member := start(t, path, server.Address, "default", "g", "2")
	joined(t, client, "g")
	for i, key := range []string{"a", "b", "c"} {
		ttl := timecache.TTL(time.Duration(i+1) * time.Second)
		if _, err := client.Put(t.Context(), key, []byte("\xff"+key), ttl); err != nil {
			t.Fatal(err)
		}
	}
	// The clock moves once: what is not settled is never too late.
	if _, err := timecachetest.NewClock(client).Advance(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	member.line("a\tff61\t1")
	member.line("b\tff62\t1")
	if rest, err := io.ReadAll(member.out); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	member.end(0)
	member = start(t, path, server.Address, "default", "g", "9")
	if line := member.line(""); !strings.HasPrefix(line, "c\tff63\t") {
		t.Error(line)
	}
	member.end(syscall.SIGTERM)
}
