package timecache_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

// authority signs certificates, and writes them to files.
type authority struct {
	t           *testing.T
	directory   string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, directory: t.TempDir()}
	a.key = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	a.certificate = &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(time.Hour)}
	der := must(x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, a.key.Public(), a.key))(t)
	a.write("ca.crt", "CERTIFICATE", der)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.directory, name) }

func (a *authority) text(name, text string) {
	if err := os.WriteFile(a.path(name), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) write(name, kind string, der []byte) {
	a.text(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// sign makes NAME.crt and NAME.key, for 127.0.0.1 and the DNS name.
func (a *authority) sign(name, dns string) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{dns},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	a.write(name+".crt", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(a.t))
	a.write(name+".key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))(a.t))
}

func TestCredentials(t *testing.T) {
	a := newAuthority(t)
	a.sign("server", "cache.example")
	a.sign("client", "billing.example")
	a.text("token", "  the-token\n")
	a.text("access.yaml", fmt.Sprintf(`
principals:
  - {name: billing, certificate_sans: [billing.example]}
  - {name: ops, token_sha256: ["%x"]}
rules:
  - {principals: [billing], namespaces: [default], verbs: [read, write]}
  - {principals: [ops], namespaces: [default], verbs: [read]}
`, sha256.Sum256([]byte("the-token"))))
	a.text("config.yaml", fmt.Sprintf(`
listeners:
  - address: 127.0.0.1:0
    tls: {certificate_file: %[1]s/server.crt, key_file: %[1]s/server.key, client_ca_file: %[1]s/ca.crt, client_certificate: optional}
access: {file: %[1]s/access.yaml}
`, a.directory))
	server := timecachetest.StartConfigured(t, a.path("config.yaml"))
	files := func() *timecache.TLSFiles { return &timecache.TLSFiles{CA: a.path("ca.crt")} }
	mutual := files()
	mutual.Certificate, mutual.Key = a.path("client.crt"), a.path("client.key")
	named, misnamed := files(), files()
	named.ServerName, misnamed.ServerName = "cache.example", "other.example"
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(a.path("ca.crt")))(t))
	own := grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots}))

	for _, test := range []struct {
		name     string
		options  timecache.Options
		get, put codes.Code
		reason   timecache.Reason // Of the put.
	}{
		{"certificate", timecache.Options{TLS: mutual}, codes.OK, codes.OK, ""},
		{"token", timecache.Options{TLS: named, Token: "the-token"}, codes.OK, codes.PermissionDenied, timecache.AccessDenied},
		{"token's file", timecache.Options{TLS: files(), TokenFile: a.path("token")}, codes.OK, codes.PermissionDenied, timecache.AccessDenied},
		{"own credentials", timecache.Options{Token: "the-token", DialOptions: []grpc.DialOption{own}}, codes.OK, codes.PermissionDenied, timecache.AccessDenied},
		{"none", timecache.Options{TLS: files()}, codes.Unauthenticated, codes.Unauthenticated, timecache.NoCredentials},
		{"another token", timecache.Options{TLS: files(), Token: "x"}, codes.Unauthenticated, codes.Unauthenticated, timecache.UnknownToken},
		{"another name", timecache.Options{TLS: misnamed}, codes.Unavailable, codes.Unavailable, ""},
		{"plain text", timecache.Options{}, codes.Unavailable, codes.Unavailable, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := server.Client(test.options)
			if _, _, err := client.Get(t.Context(), "k"); err != nil || test.get != codes.OK {
				var reason timecache.Reason
				if test.get == test.put {
					reason = test.reason
				}
				refused(t, err, test.get, reason)
			}
			if _, err := client.Put(t.Context(), "k", nil); err != nil || test.put != codes.OK {
				refused(t, err, test.put, test.reason)
			}
		})
	}

	// Files that are replaced count from the next connection on.
	a.sign("client", "nobody.example")
	_, err := server.Client(timecache.Options{TLS: mutual}).Put(t.Context(), "k", nil)
	refused(t, err, codes.Unauthenticated, timecache.UnknownCertificate)
}

// startGuarded starts a server in plain text, on a virtual clock, where the holders of these
// tokens may do everything.
func (a *authority) startGuarded(tokens ...string) *timecachetest.Server {
	a.t.Helper()
	a.accept(tokens...)
	a.text("config.yaml", fmt.Sprintf(`
listeners: [{address: "127.0.0.1:0"}]
access: {file: %s}
`, a.path("access.yaml")))
	return timecachetest.StartConfigured(a.t, a.path("config.yaml"), "--virtual-clock")
}

// accept replaces the tokens. The server looks every second, and ends the streams of others.
func (a *authority) accept(tokens ...string) {
	digests := make([]string, len(tokens))
	for i, token := range tokens {
		digests[i] = fmt.Sprintf("%x", sha256.Sum256([]byte(token)))
	}
	a.replace("access.yaml", fmt.Sprintf(`
principals: [{name: member, token_sha256: [%s]}]
rules: [{principals: [member], namespaces: ["*"], verbs: [read, write, watch, settle, admin]}]
`, strings.Join(digests, ", ")))
}

// replace makes a file anew in one step.
func (a *authority) replace(name, text string) {
	a.text(name+".part", text)
	if err := os.Rename(a.path(name+".part"), a.path(name)); err != nil {
		a.t.Fatal(err)
	}
}

// What is open goes on with the token that takes the place of its own, as after a break.
func TestStreamsGoOnWithAnotherToken(t *testing.T) {
	a := newAuthority(t)
	a.replace("token", "token-0")
	server := a.startGuarded("token-0")
	client := server.Client(timecache.Options{TokenFile: a.path("token")})
	clock := timecachetest.NewClock(client)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	breaks := map[string][]error{}
	// The other token is tried at once: nothing here waits for the pause.
	reconnect := func(name string) timecache.Reconnect {
		return timecache.Reconnect{MinPause: time.Hour, MaxPause: time.Hour,
			OnBreak: func(err error) { breaks[name] = append(breaks[name], err) }}
	}
	streams := map[string]*reader{
		"watch":    read(t, client.Watch(ctx, timecache.WatchOptions{Reconnect: reconnect("watch")})),
		"expiring": read(t, client.WatchExpiring(ctx, time.Hour, timecache.ExpiringOptions{Reconnect: reconnect("expiring")})),
		"member":   read(t, client.Consume(ctx, "g", timecache.ConsumeOptions{Reconnect: reconnect("member")})),
	}
	for _, stream := range streams {
		stream.batch()
	}
	for round := 1; round <= 2; round++ {
		token := fmt.Sprint("token-", round)
		a.replace("token", token)
		a.accept(token)
		for name, stream := range streams {
			batch := stream.batch()
			for !batch.Reconnected { // The last watermarks.
				batch = stream.batch()
			}
			equal(t, "lost of the "+name, batch.Lost, 0)
			equal(t, "events that the "+name+" is told again", len(batch.Events), 0)
			equal(t, "breaks of the "+name, len(breaks[name]), round)
			for _, err := range breaks[name] {
				refused(t, err, codes.Unauthenticated, timecache.UnknownToken)
			}
		}
		must(client.Put(ctx, token, nil, timecache.TTL(10*time.Minute)))(t)
		// Told before it dies, too.
		for _, step := range []struct {
			by   time.Duration
			then []string
		}{{time.Second, []string{"expiring"}}, {20 * time.Minute, []string{"watch", "member"}}} {
			must(clock.Advance(ctx, step.by))(t)
			for _, name := range step.then {
				batch := streams[name].batch()
				for len(batch.Events) == 0 {
					batch = streams[name].batch()
				}
				event := batch.Events[0]
				equal(t, "event of the "+name, event.Key, token)
				equal(t, "events of the "+name, len(batch.Events), 1)
				if name == "member" { // Else it would be given out again.
					must(client.Settle(ctx, "g", []timecache.Settlement{{DeliveryToken: event.DeliveryToken}}))(t)
				}
			}
		}
	}
}

// blocking makes a worker of the group "g", whose handler waits to go on with each event.
func blocking(client *timecache.Client, options timecache.WorkerOptions) (worker *timecache.Worker, begun chan string, goOn chan bool) {
	begun, goOn = make(chan string, 10), make(chan bool)
	worker = client.Worker("g", func(_ context.Context, event *timecache.ExpiredEvent) error {
		begun <- event.Key
		<-goOn
		return nil
	}, options)
	return worker, begun, goOn
}

// What a worker has not begun as its token is replaced goes to another member, and not to its
// handler, too.
func TestWorkerLosesWhatIsUnbegunWithItsToken(t *testing.T) {
	a := newAuthority(t)
	a.replace("token", "one")
	server := a.startGuarded("one", "admin")
	admin := server.Client(timecache.Options{Token: "admin"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	broken, reconnect := make(chan error, 1), make(chan bool)
	told, onError := telling()
	worker, begun, goOn := blocking(server.Client(timecache.Options{TokenFile: a.path("token")}),
		timecache.WorkerOptions{Concurrency: 1, MaxInFlight: 10, OnError: onError,
			Reconnect: timecache.Reconnect{MinPause: time.Hour, MaxPause: time.Hour, OnBreak: func(err error) {
				broken <- err
				<-reconnect
			}}})
	stop, end := working(t, worker)
	joined(t, admin, "g")
	die := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			must(admin.Put(ctx, key, nil))(t)
		}
		must(timecachetest.NewClock(admin).Advance(ctx, time.Minute))(t)
	}
	statistics := func(holds func(*timecache.GroupStatistics) bool) {
		t.Helper()
		eventually(t, func() bool {
			return holds(must(admin.GetGroup(ctx, "g", timecache.IncludeStatistics))(t).Statistics)
		})
	}
	die("one", "other")
	receive(t, begun)
	statistics(func(s *timecache.GroupStatistics) bool { return s.InFlight == 2 })
	other := read(t, admin.Consume(ctx, "g", timecache.ConsumeOptions{}))
	other.batch()

	a.replace("token", "two")
	a.accept("two", "admin")
	refused(t, receive(t, broken), codes.Unauthenticated, timecache.UnknownToken)
	given := map[string]timecache.ExpiredEvent{}
	for len(given) < 2 {
		for _, event := range other.batch().Events {
			given[event.Key] = event
		}
	}
	close(reconnect)
	refused(t, receive(t, told), codes.Unauthenticated, timecache.UnknownToken)
	statistics(func(s *timecache.GroupStatistics) bool { return s.Members == 2 })
	goOn <- true
	eventually(t, func() bool { return worker.Stats().Handled == 1 })
	for _, event := range given {
		must(admin.Settle(ctx, "g", []timecache.Settlement{{DeliveryToken: event.DeliveryToken}}))(t)
	}
	other.stop()
	statistics(func(s *timecache.GroupStatistics) bool { return s.Members == 1 })
	die("later")
	equal(t, "begun", receive(t, begun), "later")
	goOn <- true
	eventually(t, func() bool { return worker.Stats().Handled == 2 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	settled(t, admin, "g")
}

// A worker that is stopping as its token is replaced does not come back, but settles.
func TestWorkerThatStopsLeavesWithItsToken(t *testing.T) {
	a := newAuthority(t)
	a.replace("token", "one")
	server := a.startGuarded("one", "admin")
	admin := server.Client(timecache.Options{Token: "admin"})
	told, onError := telling()
	worker, begun, goOn := blocking(server.Client(timecache.Options{TokenFile: a.path("token")}),
		timecache.WorkerOptions{OnError: onError})
	stop, end := working(t, worker)
	joined(t, admin, "g")
	must(admin.Put(t.Context(), "k", nil))(t)
	must(timecachetest.NewClock(admin).Advance(t.Context(), time.Minute))(t)
	receive(t, begun)
	stop()
	a.replace("token", "two")
	a.accept("two", "admin")
	refused(t, receive(t, told), codes.Unauthenticated, timecache.UnknownToken)
	eventually(t, func() bool {
		g, err := admin.GetGroup(t.Context(), "g", timecache.IncludeStatistics)
		return err == nil && g.Statistics.Members == 0
	})
	close(goOn)
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	equal(t, "stats", worker.Stats(), timecache.WorkerStats{Handled: 1, Acked: 1})
	equal(t, "members", must(admin.GetGroup(t.Context(), "g", timecache.IncludeStatistics))(t).Statistics.Members, 0)
	settled(t, admin, "g")
}

// A watch and a worker whose token is refused, and whose file cannot be read, wait for it.
func TestStreamsWaitForTheirToken(t *testing.T) {
	a := newAuthority(t)
	a.replace("token", "one")
	server := a.startGuarded("one", "admin")
	admin := server.Client(timecache.Options{Token: "admin"})
	client := server.Client(timecache.Options{TokenFile: a.path("token")})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	told, onError := telling()
	worker, begun, goOn := blocking(client, timecache.WorkerOptions{Reconnect: quick, OnError: onError})
	stop, end := working(t, worker)
	joined(t, admin, "g")
	must(admin.Put(ctx, "k", nil))(t)
	must(timecachetest.NewClock(admin).Advance(ctx, time.Minute))(t)
	receive(t, begun)
	var breaks int
	reconnect := quick
	reconnect.OnBreak = func(err error) {
		if breaks++; breaks == 2 {
			a.replace("token", "two")
		}
	}
	watch := read(t, client.Watch(ctx, timecache.WatchOptions{Reconnect: reconnect}))
	watch.batch()

	if err := os.Remove(a.path("token")); err != nil {
		t.Fatal(err)
	}
	a.accept("two", "admin")
	var ofStream, ofSettlement int
	for ofStream < 2 || ofSettlement < 2 {
		err := receive(t, told)
		if errors.Is(err, os.ErrNotExist) {
			refused(t, err, codes.Unavailable, "")
			if ofStream++; ofStream == 1 {
				close(goOn)
			}
		} else {
			refused(t, err, codes.Unauthenticated, timecache.UnknownToken)
			ofSettlement++
		}
	}
	// One that does not stand yet says what the server has said.
	refusedWatch(t, client.Watch(ctx, timecache.WatchOptions{}), codes.Unauthenticated, timecache.UnknownToken)
	equal(t, "reconnected", watch.batch().Reconnected, true)
	eventually(t, func() bool { return worker.Stats().Acked == 1 })
	stop()
	if err := receive(t, end); err != nil {
		t.Error(err)
	}
	// It may have come again before it was settled, and have been handled twice.
	equal(t, "unsettled", worker.Stats().Unsettled, 0)
	settled(t, admin, "g")
}

// guarded is a server of one token, which changes when a watch is broken.
type guarded struct {
	pb.UnimplementedTimeCacheServiceServer
	mu     sync.Mutex
	token  string
	calls  int
	refuse func()      // Nil, or called before it refuses a token.
	breaks chan string // The next token: what watches then ends.
}

func (g *guarded) check(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	md, _ := metadata.FromIncomingContext(ctx)
	if got := md.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+g.token {
		if g.refuse != nil {
			g.refuse()
		}
		return status.Error(codes.Unauthenticated, "unknown token")
	}
	return nil
}

func (g *guarded) Put(ctx context.Context, _ *pb.PutRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{}, g.check(ctx)
}

func (g *guarded) Pipeline(stream grpc.BidiStreamingServer[pb.ExecuteRequest, pb.ExecuteResponse]) error {
	if err := g.check(stream.Context()); err != nil {
		return err
	}
	return answerAll(stream)
}

func (g *guarded) WatchExpired(_ *pb.WatchExpiredRequest, stream grpc.ServerStreamingServer[pb.WatchExpiredResponse]) error {
	if err := g.check(stream.Context()); err != nil {
		return err
	}
	if err := stream.Send(&pb.WatchExpiredResponse{Namespace: timecache.DefaultNamespace}); err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
		return nil
	case token := <-g.breaks:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.token = token
		return status.Error(codes.Unavailable, "restarting")
	}
}

// A token that is replaced together with the server's is read at the first refusal, however
// young the one is that was read before.
func TestTokenFileIsReadAgainWhenItIsRefused(t *testing.T) {
	a := newAuthority(t)
	a.text("token", "one")
	service := &guarded{token: "one", breaks: make(chan string)}
	client := serve(t, service, timecache.Options{TokenFile: a.path("token")})
	watch := read(t, client.Watch(t.Context(), timecache.WatchOptions{Reconnect: quick}))
	watch.batch()
	a.text("token", "two")
	service.breaks <- "two"
	if !watch.batch().Reconnected {
		t.Error("the watch was not broken")
	}

	a.text("token", "three")
	service.breaks <- "three"
	must(client.Put(t.Context(), "k", nil))(t)
	watch.batch()

	// A pipeline does not begin again, but what comes next has the new token.
	a.text("token", "four")
	service.breaks <- "four"
	refused(t, client.Pipeline(t.Context(), timecache.PipelineOptions{}).Close(), codes.Unauthenticated, "")
	if err := client.Pipeline(t.Context(), timecache.PipelineOptions{}).Close(); err != nil {
		t.Error(err)
	}
}

// A token that stays the one that was refused is not tried again.
func TestRefusedTokenEndsACall(t *testing.T) {
	a := newAuthority(t)
	a.text("token", "one")
	service := &guarded{token: "two"}
	client := serve(t, service, timecache.Options{TokenFile: a.path("token")})
	_, err := client.Put(t.Context(), "k", nil)
	refused(t, err, codes.Unauthenticated, "")
	refusedWatch(t, client.Watch(t.Context(), timecache.WatchOptions{}), codes.Unauthenticated, "")
	equal(t, "calls", service.calls, 2)
}

// A file with ever another token, each of which is refused, ends a watch at the second.
func TestEverOtherTokensEndAWatch(t *testing.T) {
	a := newAuthority(t)
	a.text("token", "token-0")
	service := &guarded{token: "another"}
	service.refuse = func() { a.text("token", fmt.Sprint("token-", service.calls)) }
	client := serve(t, service, timecache.Options{TokenFile: a.path("token")})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watch := client.Watch(ctx, timecache.WatchOptions{Reconnect: timecache.Reconnect{WaitForServer: true}})
	for range 2 { // Also a loop that is done again.
		service.calls = 0
		refusedWatch(t, watch, codes.Unauthenticated, "")
		equal(t, "calls", service.calls, 2)
	}
}

func TestCredentialOptions(t *testing.T) {
	a := newAuthority(t)
	a.text("empty", "\n")
	for address, test := range map[string]struct {
		options timecache.Options
		says    string
	}{
		"cache.example:7171":  {timecache.Options{Token: "t"}, "plain text"},
		"cache.example:7172":  {timecache.Options{TokenFile: a.path("empty"), PlaintextToken: true}, "graphic ASCII"},
		"127.0.0.1:1":         {timecache.Options{Token: "a b"}, "graphic ASCII"},
		"127.0.0.1:2":         {timecache.Options{Token: "t", TokenFile: a.path("empty")}, "not both"},
		"127.0.0.1:3":         {timecache.Options{TLS: &timecache.TLSFiles{CA: a.path("absent")}}, "CA file"},
		"127.0.0.1:4":         {timecache.Options{TLS: &timecache.TLSFiles{CA: a.path("empty")}}, "no PEM certificate"},
		"127.0.0.1:5":         {timecache.Options{TLS: &timecache.TLSFiles{Certificate: a.path("ca.crt")}}, "certificate and key"},
		"unknown-scheme:////": {timecache.Options{DialOptions: []grpc.DialOption{grpc.WithDefaultServiceConfig("{")}}, "service config"},
	} {
		_, err := timecache.NewClient(address, test.options)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want something about %q", address, err, test.says)
			continue
		}
		refused(t, err, codes.InvalidArgument, "")
	}
	for _, address := range []string{"unix:/run/timecached.sock", "localhost:1", "[::1]:1"} {
		client, err := timecache.NewClient(address, timecache.Options{Token: "t"})
		if err != nil {
			t.Error(address, err)
			continue
		}
		client.Close()
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	server := timecachetest.StartOn(t, "unix:"+socket)
	if _, err := server.Client(timecache.Options{}).Put(t.Context(), "k", nil); err != nil {
		t.Error(err)
	}
}
