package timecache

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// tokenInterval is how often a token's file is read again.
const tokenInterval = 10 * time.Second

// TLSFiles says how a connection is secured. Files are PEM. They may be replaced while the
// client lives, by a rename: what they hold then counts from the next connection on. The
// zero value asks for TLS with the system's roots.
type TLSFiles struct {
	// CA holds the roots that the server's certificate must lead to. Empty: the
	// system's.
	CA string
	// Certificate, with its chain, and Key are the client's own, for mutual TLS. Both or
	// none.
	Certificate, Key string
	// ServerName is the name that the server's certificate must have. Empty: the
	// address's host.
	ServerName string
}

func (f *TLSFiles) config() (*tls.Config, error) {
	config := &tls.Config{ServerName: f.ServerName, MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s: holds no PEM certificate", f.CA)
		}
	}
	if f.Certificate != "" || f.Key != "" {
		certificate, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate and key: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

// fileTLS reads the files for each connection.
type fileTLS struct {
	credentials.TransportCredentials
	files TLSFiles
}

func (t *fileTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (
	net.Conn, credentials.AuthInfo, error) {
	config, err := t.files.config()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

func (t *fileTLS) Clone() credentials.TransportCredentials {
	return &fileTLS{t.TransportCredentials.Clone(), t.files}
}

// bearer adds the token to each call.
type bearer struct {
	mu        sync.Mutex
	file      string
	token     string
	read      time.Time
	changed   time.Time // When another token was read.
	unread    error     // Why the file could not be read; nil: it was.
	plaintext bool
}

func (b *bearer) RequireTransportSecurity() bool { return !b.plaintext }

func (b *bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.read) >= tokenInterval {
		b.refresh()
	}
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// refresh reads the file, if there is one. With mu.
func (b *bearer) refresh() {
	if b.file == "" {
		return
	}
	b.read = time.Now()
	token, err := readToken(b.file)
	// While the file is replaced, the old token stays good.
	if b.unread = err; err == nil && token != b.token {
		b.token, b.changed = token, time.Now()
	}
}

// reread does not wait for tokenInterval: the server has refused the token.
func (b *bearer) reread() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refresh()
}

// afterRefusal says whether a call that began then, and failed so, may succeed with the token
// that was read since; or why the file could not be read, which may hold one later.
func (b *bearer) afterRefusal(begun time.Time, failure *Error) (hasOther bool, unread error) {
	if b == nil || failure.Code != codes.Unauthenticated {
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed.After(begun), b.unread
}

func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := string(bytes.TrimSpace(text))
	if err := checkToken(token); err != nil {
		return "", fmt.Errorf("token file %s: %w", file, err)
	}
	return token, nil
}

func checkToken(token string) error {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("a token has one or more graphic ASCII characters, and nothing else")
	}
	return nil
}

func dialCredentials(addresses []string, options *Options) ([]grpc.DialOption, *bearer, error) {
	refuse := func(err error) ([]grpc.DialOption, *bearer, error) {
		return nil, nil, &Error{Code: codes.InvalidArgument, Message: err.Error(), cause: err}
	}
	transport := insecure.NewCredentials()
	if options.TLS != nil {
		config, err := options.TLS.config()
		if err != nil {
			return refuse(err)
		}
		transport = &fileTLS{credentials.NewTLS(config), *options.TLS}
	}
	dial := []grpc.DialOption{grpc.WithTransportCredentials(transport)}
	if options.Token == "" && options.TokenFile == "" {
		return dial, nil, nil
	}
	if options.Token != "" && options.TokenFile != "" {
		return refuse(fmt.Errorf("give Token or TokenFile, not both"))
	}
	plaintext := options.TLS == nil && options.PlaintextToken
	for _, address := range addresses {
		if err := checkTokenTo(address, options); err != nil {
			return refuse(err)
		}
		plaintext = plaintext || options.TLS == nil && isLocal(address)
	}
	token := &bearer{file: options.TokenFile, token: options.Token, plaintext: plaintext}
	if token.file != "" {
		var err error
		if token.token, err = readToken(token.file); err != nil {
			return refuse(err)
		}
		token.read = time.Now()
	} else if err := checkToken(token.token); err != nil {
		return refuse(err)
	}
	return append(dial, grpc.WithPerRPCCredentials(token)), token, nil
}

// checkTokenTo refuses to send a token in plain text to another machine.
func checkTokenTo(address string, options *Options) error {
	// Credentials in DialOptions are those of the caller: gRPC checks that they encrypt.
	if options.Token == "" && options.TokenFile == "" || options.TLS != nil || options.PlaintextToken ||
		isLocal(address) || len(options.DialOptions) > 0 {
		return nil
	}
	return fmt.Errorf("a token is not sent to %s in plain text: use TLS, or allow it", address)
}

// isLocal says whether what is sent to the address stays on this machine.
func isLocal(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
