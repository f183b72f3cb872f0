// Sessions is a session store: a session lives for 30 minutes since it was last used, and
// its end is told. It reads commands from its standard input:
//
//	login USER         prints the new session's id
//	visit ID PAGE      adds to the session, and prints it
//	logout ID
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"timecached.dev/client/go"
)

// ErrNoSession is what a session ends with that has expired, or never was.
var ErrNoSession = errors.New("no such session")

// Session is what is known of a visitor.
type Session struct {
	User  string   `json:"user"`
	Pages []string `json:"pages"`
}

// Store keeps sessions in a namespace. Safe for concurrent use, also by several programs.
type Store struct{ client *timecache.Client }

// NewStore makes the client's namespace if it is not there.
func NewStore(ctx context.Context, client *timecache.Client) (*Store, error) {
	_, err := client.CreateNamespace(ctx, client.Namespace(), timecache.NamespaceOptions{
		TTL: new(30 * time.Minute), Sliding: new(true)})
	if err != nil && !errors.Is(err, timecache.NamespaceExists) {
		return nil, err
	}
	return &Store{client}, nil
}

// Login begins a session and returns its id.
func (s *Store) Login(ctx context.Context, user string) (id string, err error) {
	id = rand.Text()
	_, err = s.client.PutJSON(ctx, id, Session{User: user}, timecache.IfAbsent)
	return id, err
}

// Update changes a session. Where another has changed it meanwhile, it begins again with
// what that one has left.
func (s *Store) Update(ctx context.Context, id string, change func(*Session)) (Session, error) {
	for {
		var session Session
		entry, found, err := s.client.Get(ctx, id)
		if err == nil && !found {
			err = ErrNoSession
		}
		if err == nil {
			err = entry.JSON(&session)
		}
		if err != nil {
			return Session{}, err
		}
		change(&session)
		_, err = s.client.PutJSON(ctx, id, session, timecache.IfVersion(entry.Version))
		if errors.Is(err, timecache.VersionMismatch) {
			continue
		}
		if errors.Is(err, timecache.KeyNotFound) {
			err = ErrNoSession
		}
		return session, err
	}
}

// Logout ends a session without telling it.
func (s *Store) Logout(ctx context.Context, id string) error {
	_, err := s.client.Remove(ctx, id)
	return err
}

// Ended calls back for each session that expires from now on, until the context ends, and
// begins with a call of ready.
func (s *Store) Ended(ctx context.Context, ready func(), ended func(id string, session Session)) error {
	for batch, err := range s.client.Watch(ctx, timecache.WatchOptions{}) {
		if err != nil {
			return err
		}
		if ready != nil {
			ready()
			ready = nil
		}
		if batch.Lost > 0 {
			log.Printf("the ends of %d sessions were missed", batch.Lost)
		}
		for _, event := range batch.Events {
			var session Session
			if err := event.JSON(&session); err != nil {
				return err
			}
			ended(event.Key, session)
		}
	}
	return nil
}

func main() {
	log.SetFlags(0)
	address := flag.String("server", "127.0.0.1:7171", "host:port")
	flag.Parse()
	if err := run(context.Background(), *address, os.Stdin); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string, commands io.Reader) error {
	client, err := timecache.NewClient(address, timecache.Options{Namespace: "sessions"})
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := NewStore(ctx, client)
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() {
		ready <- store.Ended(ctx, func() { ready <- nil }, func(id string, session Session) {
			fmt.Printf("%s has left after %d pages\n", session.User, len(session.Pages))
		})
	}()
	if err := <-ready; err != nil {
		return err
	}
	for lines := bufio.NewScanner(commands); lines.Scan(); {
		if err := do(ctx, store, strings.Fields(lines.Text())); err != nil {
			fmt.Println(err)
		}
	}
	return nil
}

func do(ctx context.Context, store *Store, words []string) error {
	switch {
	case len(words) == 2 && words[0] == "login":
		id, err := store.Login(ctx, words[1])
		if err == nil {
			fmt.Println(id)
		}
		return err
	case len(words) == 3 && words[0] == "visit":
		session, err := store.Update(ctx, words[1], func(s *Session) { s.Pages = append(s.Pages, words[2]) })
		if err == nil {
			fmt.Println(session.User, session.Pages)
		}
		return err
	case len(words) == 2 && words[0] == "logout":
		return store.Logout(ctx, words[1])
	}
	return errors.New("expected login USER, visit ID PAGE or logout ID")
}
