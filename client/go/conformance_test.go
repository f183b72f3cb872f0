package timecache_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
	"timecached.dev/client/go/timecachetest"
)

// The scenarios that all clients run: tests/conformance/README.md has their language.

type object = map[string]any

type scenario struct {
	Name       string            `json:"name"`
	About      string            `json:"about"`
	Namespaces map[string]object `json:"namespaces"`
	Steps      []object          `json:"steps"`
}

func TestConformance(t *testing.T) {
	directory := cmp.Or(os.Getenv("CONFORMANCE"), "../../tests/conformance")
	files, _ := filepath.Glob(filepath.Join(directory, "*.json"))
	recipes, _ := filepath.Glob(filepath.Join(directory, "recipes", "*.json"))
	files = append(files, recipes...)
	if len(files) == 0 {
		t.Skip("no scenarios: set CONFORMANCE to their directory")
	}
	server := timecachetest.Start(t, "--virtual-clock")
	clients := map[string]*timecache.Client{
		"shared": server.Client(timecache.Options{Namespace: "main"}),
		"unary":  server.Client(timecache.Options{Namespace: "main", Batching: new(false)}),
	}
	if os.Getenv("OWNER_ROUTING") != "" { // The server is three_nodes.
		clients["routed"] = server.Client(timecache.Options{Namespace: "main", OwnerRouting: true})
		clients["routed unary"] = server.Client(timecache.Options{Namespace: "main", OwnerRouting: true, Batching: new(false)})
		t.Run("calls_reach_their_owners", callsReachTheirOwners)
	}
	for _, file := range files {
		var content struct {
			About     string     `json:"about"`
			Scenarios []scenario `json:"scenarios"`
		}
		decoder := json.NewDecoder(strings.NewReader(string(must(os.ReadFile(file))(t))))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&content); err != nil {
			t.Fatal(file, err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			for _, scenario := range content.Scenarios {
				for name, client := range clients {
					t.Run(scenario.Name+"/"+name, func(t *testing.T) { runScenario(t, client, scenario) })
				}
			}
		})
	}
}

// run is a scenario that is under way.
type run struct {
	ctx    context.Context
	client *timecache.Client
	clock  *timecachetest.Clock
	start  time.Time
	vars   map[string]any
	open   map[string]opened
	made   map[string]any // Recipes.
}

// opened is a watch, a member or a worker.
type opened interface{ close() error }

func runScenario(t *testing.T, client *timecache.Client, s scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &run{ctx: ctx, client: client, clock: timecachetest.NewClock(client), vars: object{}, open: map[string]opened{},
		made: map[string]any{}}
	now := must(r.clock.Now(ctx))(t)
	r.start = must(r.clock.AdvanceTo(ctx, now.Add(time.Hour).Truncate(time.Hour)))(t)
	if s.Namespaces == nil {
		s.Namespaces = map[string]object{"main": {}}
	}
	remove := func() {
		for name := range s.Namespaces {
			client.DeleteNamespace(ctx, name)
		}
	}
	remove()
	defer remove()
	for name, options := range s.Namespaces {
		request := &pb.NamespaceOptions{}
		if err := fill(request, options); err != nil {
			t.Fatal(err)
		}
		must(client.CreateNamespace(ctx, name, timecache.NamespaceOptionsFrom(request)))(t)
	}
	defer func() {
		for _, one := range r.open {
			one.close()
		}
	}()
	for i, step := range s.Steps {
		if err := r.step(step); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// step does one step; an error is how it came out otherwise than expected.
func (r *run) step(step object) error {
	kinds := map[string]func(string, object) error{"call": r.call, "advance": r.advance, "watch": r.watch,
		"watch_expiring": r.watch, "watch_changes": r.watch, "member": r.member, "worker": r.worker, "events": r.events, "handled": r.handled,
		"close": r.close, "recipe": r.recipe, "do": r.doRecipe}
	for key, value := range step {
		if do := kinds[key]; do != nil {
			name, is := value.(string)
			if !is {
				return fmt.Errorf("%s: %v is no string", key, value)
			}
			return do(name, step)
		}
	}
	return fmt.Errorf("a step of no kind: %v", step)
}

// known refuses what is in a step beside these keys.
func known(o object, keys ...string) error {
	for key := range o {
		if !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+key+" ") {
			return fmt.Errorf("the runner does not know %q", key)
		}
	}
	return nil
}

func (r *run) advance(by string, step object) error {
	duration, err := parseDuration(by)
	if err == nil {
		_, err = r.clock.Advance(r.ctx, duration)
	}
	return errors.Join(err, known(step, "advance"))
}

// outcome compares what came, an answer or an error, with what a step expects, and saves
// parts of the answer.
func (r *run) outcome(step object, answer any, err error) error {
	if want, has := step["error"]; has {
		return r.match("error", want, err)
	}
	if err != nil {
		return fmt.Errorf("came: %w", err)
	}
	if want, has := step["expect"]; has {
		if err := r.match("answer", want, answer); err != nil {
			return err
		}
	}
	saves, _ := step["save"].(object)
	for name, path := range saves {
		value, err := lookUp(answer, path.(string))
		if err != nil {
			return err
		}
		r.vars[name] = value
	}
	return nil
}

func (r *run) arguments(step object) (object, error) {
	arguments, _ := step["args"].(object)
	resolved, err := r.resolve(arguments)
	if err != nil || resolved == nil {
		return object{}, err
	}
	return resolved.(object), nil
}

// resolve puts in what was saved.
func (r *run) resolve(value any) (any, error) {
	switch value := value.(type) {
	case object:
		if name, is := value["var"]; is {
			saved, has := r.vars[name.(string)]
			if !has {
				return nil, fmt.Errorf("nothing was saved as %v", name)
			}
			return saved, nil
		}
		if at, is := value["at"].(string); is && len(value) == 1 {
			since, err := parseDuration(at)
			return r.start.Add(since), err
		}
		result := object{}
		for key, one := range value {
			resolved, err := r.resolve(one)
			if err != nil {
				return nil, err
			}
			result[key] = resolved
		}
		return result, nil
	case []any:
		result := make([]any, len(value))
		for i, one := range value {
			resolved, err := r.resolve(one)
			if err != nil {
				return nil, err
			}
			result[i] = resolved
		}
		return result, nil
	}
	return value, nil
}

func (r *run) call(method string, step object) error {
	if err := known(step, "call", "args", "expect", "error", "save", "eventually"); err != nil {
		return err
	}
	arguments, err := r.arguments(step)
	if err != nil {
		return err
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		answer, failure, err := r.do(method, arguments)
		if err != nil {
			return err
		}
		err = r.outcome(step, answer, failure)
		if err == nil || step["eventually"] != true || time.Since(begin) > 10*time.Second {
			return err
		}
	}
}

// filled is the request of a call.
func filled[Request proto.Message](request Request, arguments object) (Request, error) {
	return request, fill(request, arguments)
}

// take removes arguments that are no field of the request.
func take(arguments object, name string) (any, object) {
	rest := object{}
	for key, value := range arguments {
		if key != name {
			rest[key] = value
		}
	}
	return arguments[name], rest
}
