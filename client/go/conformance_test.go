package timecache_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
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
	if len(files) == 0 {
		t.Skip("no scenarios: set CONFORMANCE to their directory")
	}
	client := timecachetest.Start(t, "--virtual-clock").Client(timecache.Options{Namespace: "main"})
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
				t.Run(scenario.Name, func(t *testing.T) { runScenario(t, client, scenario) })
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
}

// opened is a watch, a member or a worker.
type opened interface{ close() error }

func runScenario(t *testing.T, client *timecache.Client, s scenario) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &run{ctx: ctx, client: client, clock: timecachetest.NewClock(client), vars: object{}, open: map[string]opened{}}
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
		"watch_expiring": r.watch, "member": r.member, "worker": r.worker, "events": r.events, "handled": r.handled,
		"close": r.close}
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

// do makes a call with the client; err is the runner's.
func (r *run) do(method string, arguments object) (answer any, failure, err error) {
	client, ctx := r.client, r.ctx
	in, arguments := take(arguments, "namespace")
	if in != nil {
		client = client.In(in.(string))
	}
	operation := map[string]bool{"put": true, "get": true, "remove": true, "contains": true, "touch": true,
		"append": true, "combine": true, "gather": true}
	switch {
	case operation[method]:
		one := &pb.Operation{}
		if err := fill(one, object{method: arguments}); err != nil {
			return nil, nil, err
		}
		answer, failure = single(ctx, client, one)
		return answer, failure, nil
	case method == "execute" || method == "pipeline":
		request, err := filled(&pb.ExecuteRequest{}, arguments)
		if err != nil {
			return nil, nil, err
		}
		answer, failure = many(ctx, client, request.Operations, method == "pipeline")
		return answer, failure, nil
	}
	toDefault, arguments := take(arguments, "to_default")
	var update []timecache.UpdateOption
	if toDefault != nil {
		for _, name := range toDefault.([]any) {
			update = append(update, timecache.ToDefault(name.(string)))
		}
	}
	describe := func(statistics bool) (options []timecache.DescribeOption) {
		if statistics {
			options = append(options, timecache.IncludeStatistics)
		}
		return options
	}
	switch method {
	case "size":
		_, err = filled(&pb.SizeRequest{}, arguments)
		size, failure := client.Size(ctx)
		return &pb.SizeResponse{Entries: size.Entries, Bytes: size.Bytes}, failure, err
	case "scan":
		request, err := filled(&pb.ScanRequest{}, arguments)
		answer := &pb.ScanResponse{}
		options := []timecache.ScanOption{timecache.Prefix(request.KeyPrefix), timecache.KeysOption(request.KeysOnly)}
		for entry, failure := range client.Scan(ctx, options...) {
			if failure != nil {
				return nil, failure, err
			}
			answer.Entries = append(answer.Entries, entryProto(&entry))
		}
		return answer, nil, err
	case "settle":
		request, err := filled(&pb.SettleExpiredRequest{}, arguments)
		answer, failure := settle(ctx, client, request)
		return answer, failure, err
	case "create_namespace":
		request, err := filled(&pb.CreateNamespaceRequest{}, arguments)
		namespace, failure := client.CreateNamespace(ctx, request.Name, timecache.NamespaceOptionsFrom(request.Options))
		return namespaceProto(namespace), failure, err
	case "get_namespace":
		request, err := filled(&pb.GetNamespaceRequest{}, arguments)
		namespace, failure := client.GetNamespace(ctx, request.Name, describe(request.IncludeStatistics)...)
		return namespaceProto(namespace), failure, err
	case "update_namespace":
		request, err := filled(&pb.Namespace{}, arguments)
		namespace, failure := client.UpdateNamespace(ctx, request.Name, timecache.NamespaceOptionsFrom(request.Options), update...)
		return namespaceProto(namespace), failure, err
	case "list_namespaces":
		request, err := filled(&pb.ListNamespacesRequest{}, arguments)
		namespaces, failure := client.ListNamespaces(ctx, describe(request.IncludeStatistics)...)
		answer := &pb.ListNamespacesResponse{}
		for _, namespace := range namespaces {
			answer.Namespaces = append(answer.Namespaces, namespaceProto(namespace))
		}
		return answer, failure, err
	case "delete_namespace":
		request, err := filled(&pb.DeleteNamespaceRequest{}, arguments)
		return nil, client.DeleteNamespace(ctx, request.Name), err
	case "rotate_namespace":
		request, err := filled(&pb.RotateNamespaceRequest{}, arguments)
		entries, failure := client.RotateNamespace(ctx, request.Name)
		return &pb.RotateNamespaceResponse{Entries: entries}, failure, err
	case "create_group":
		request, err := filled(&pb.CreateGroupRequest{}, arguments)
		start := timecache.FromNow
		if request.FromEarliest {
			start = timecache.FromEarliest
		}
		group, failure := client.CreateGroup(ctx, request.Name, timecache.GroupOptionsFrom(request.Options), start)
		return groupProto(group), failure, err
	case "get_group":
		request, err := filled(&pb.GetGroupRequest{}, arguments)
		group, failure := client.GetGroup(ctx, request.Name, describe(request.IncludeStatistics)...)
		return groupProto(group), failure, err
	case "update_group":
		request, err := filled(&pb.Group{}, arguments)
		group, failure := client.UpdateGroup(ctx, request.Name, timecache.GroupOptionsFrom(request.Options), update...)
		return groupProto(group), failure, err
	case "list_groups":
		request, err := filled(&pb.ListGroupsRequest{}, arguments)
		groups, failure := client.ListGroups(ctx, describe(request.IncludeStatistics)...)
		answer := &pb.ListGroupsResponse{}
		for _, group := range groups {
			answer.Groups = append(answer.Groups, groupProto(group))
		}
		return answer, failure, err
	case "delete_group":
		request, err := filled(&pb.DeleteGroupRequest{}, arguments)
		return nil, client.DeleteGroup(ctx, request.Name), err
	case "get_server":
		_, err := filled(&pb.GetServerRequest{}, arguments)
		server, failure := client.GetServer(ctx)
		return server, failure, err
	}
	return nil, nil, fmt.Errorf("the runner does not know the call %q", method)
}

// operationOptions are those of an operation; who needs them converts them to its kind.
func operationOptions(o *pb.Operation) (options []any) {
	ttl := func(d *durationpb.Duration) {
		if d != nil {
			options = append(options, timecache.TTL(d.AsDuration()))
		}
	}
	flag := func(given bool, option any) {
		if given {
			options = append(options, option)
		}
	}
	version := func(v *uint64) {
		if v != nil {
			options = append(options, timecache.IfVersion(*v))
		}
	}
	switch o := o.Request.(type) {
	case *pb.Operation_Put:
		ttl(o.Put.Ttl)
		flag(o.Put.GetCondition() != 0, timecache.Condition(o.Put.GetCondition()))
		if v, is := o.Put.Precondition.(*pb.PutRequest_IfVersion); is {
			version(&v.IfVersion)
		}
		flag(o.Put.ReturnPrevious, timecache.ReturnPrevious)
		flag(o.Put.KeepDeadline, timecache.KeepDeadline)
	case *pb.Operation_Get:
		flag(o.Get.Touch, timecache.WithTouch)
	case *pb.Operation_Remove:
		version(o.Remove.IfVersion)
		flag(o.Remove.ReturnPrevious, timecache.ReturnPrevious)
	case *pb.Operation_Touch:
		ttl(o.Touch.Ttl)
		version(o.Touch.IfVersion)
	case *pb.Operation_Append:
		ttl(o.Append.Ttl)
		flag(o.Append.GetCondition() != 0, timecache.Condition(o.Append.GetCondition()))
		if v, is := o.Append.Precondition.(*pb.AppendRequest_IfVersion); is {
			version(&v.IfVersion)
		}
		flag(o.Append.Touch, timecache.WithTouch)
	case *pb.Operation_Combine:
		ttl(o.Combine.Ttl)
		version(o.Combine.IfVersion)
		flag(o.Combine.Touch, timecache.WithTouch)
		flag(o.Combine.Initial != 0, timecache.Initial(o.Combine.Initial))
		flag(o.Combine.RemoveIfZero, timecache.RemoveIfZero)
	case *pb.Operation_Gather:
		ttl(o.Gather.Ttl)
		flag(o.Gather.Touch, timecache.WithTouch)
	}
	return options
}

func as[Option any](options []any) (result []Option) {
	for _, option := range options {
		result = append(result, option.(Option))
	}
	return result
}

func operand(request *pb.CombineRequest) timecache.Operand {
	if xor, is := request.Operand.(*pb.CombineRequest_Xor); is {
		return timecache.Xor(xor.Xor)
	}
	return timecache.Add(request.GetAdd())
}

func expectation(request *pb.GatherRequest) timecache.Expectation {
	expected := timecache.PartCount(int(request.ExpectedParts))
	for _, name := range request.ExpectedNames {
		expected.Names = append(expected.Names, string(name))
	}
	return expected
}

// single does an operation by the client's method of the same name.
func single(ctx context.Context, client *timecache.Client, operation *pb.Operation) (proto.Message, error) {
	options := operationOptions(operation)
	switch o := operation.Request.(type) {
	case *pb.Operation_Put:
		result, err := client.Put(ctx, string(o.Put.Key), o.Put.Value, as[timecache.PutOption](options)...)
		return &pb.PutResponse{Version: result.Version, Previous: entryProto(result.Previous)}, err
	case *pb.Operation_Get:
		entry, found, err := client.Get(ctx, string(o.Get.Key), as[timecache.GetOption](options)...)
		if !found {
			return &pb.GetResponse{}, err
		}
		return &pb.GetResponse{Entry: entryProto(&entry)}, err
	case *pb.Operation_Remove:
		result, err := client.Remove(ctx, string(o.Remove.Key), as[timecache.RemoveOption](options)...)
		return &pb.RemoveResponse{Removed: result.Removed, Previous: entryProto(result.Previous)}, err
	case *pb.Operation_Contains:
		found, err := client.Contains(ctx, string(o.Contains.Key))
		return &pb.ContainsResponse{Contains: found}, err
	case *pb.Operation_Touch:
		version, found, err := client.Touch(ctx, string(o.Touch.Key), as[timecache.TouchOption](options)...)
		return &pb.TouchResponse{Touched: found, Version: version}, err
	case *pb.Operation_Append:
		result, err := client.Append(ctx, string(o.Append.Key), o.Append.Value, as[timecache.AppendOption](options)...)
		return &pb.AppendResponse{Version: result.Version, ValueBytes: result.ValueBytes, Created: result.Created}, err
	case *pb.Operation_Combine:
		result, err := client.Combine(ctx, string(o.Combine.Key), operand(o.Combine), as[timecache.CombineOption](options)...)
		return &pb.CombineResponse{Result: result.Result, Version: result.Version, Created: result.Created,
			Removed: result.Removed}, err
	case *pb.Operation_Gather:
		result, err := client.Gather(ctx, string(o.Gather.Key), string(o.Gather.Part), o.Gather.Value,
			expectation(o.Gather), as[timecache.GatherOption](options)...)
		return &pb.GatherResponse{Parts: partsProto(result.Parts), Version: result.Version,
			Count: uint32(result.Count), Duplicate: result.Duplicate}, err
	}
	return nil, fmt.Errorf("the runner does not know the operation %v", operation)
}

// many does operations by Execute or a pipeline.
func many(ctx context.Context, client *timecache.Client, requests []*pb.Operation, piped bool) (any, error) {
	var operations []timecache.Operation
	for _, request := range requests {
		options := operationOptions(request)
		var operation timecache.Operation
		switch o := request.Request.(type) {
		case *pb.Operation_Put:
			operation = timecache.PutOperation(string(o.Put.Key), o.Put.Value, as[timecache.PutOption](options)...)
		case *pb.Operation_Get:
			operation = timecache.GetOperation(string(o.Get.Key), as[timecache.GetOption](options)...)
		case *pb.Operation_Remove:
			operation = timecache.RemoveOperation(string(o.Remove.Key), as[timecache.RemoveOption](options)...)
		case *pb.Operation_Contains:
			operation = timecache.ContainsOperation(string(o.Contains.Key))
		case *pb.Operation_Touch:
			operation = timecache.TouchOperation(string(o.Touch.Key), as[timecache.TouchOption](options)...)
		case *pb.Operation_Append:
			operation = timecache.AppendOperation(string(o.Append.Key), o.Append.Value, as[timecache.AppendOption](options)...)
		case *pb.Operation_Combine:
			operation = timecache.CombineOperation(string(o.Combine.Key), operand(o.Combine), as[timecache.CombineOption](options)...)
		case *pb.Operation_Gather:
			operation = timecache.GatherOperation(string(o.Gather.Key), string(o.Gather.Part), o.Gather.Value,
				expectation(o.Gather), as[timecache.GatherOption](options)...)
		}
		operations = append(operations, operation)
	}
	var results []timecache.Result
	var err error
	if piped {
		pipeline := client.Pipeline(ctx, timecache.PipelineOptions{})
		for _, operation := range operations {
			if err := pipeline.Add(operation, func(result timecache.Result) { results = append(results, result) }); err != nil {
				return nil, err
			}
		}
		err = pipeline.Close()
	} else {
		results, err = client.Execute(ctx, operations)
	}
	if err != nil {
		return nil, err
	}
	answers := make([]any, len(results))
	for i, result := range results {
		answers[i] = resultNode(requests[i], result)
	}
	return object{"results": answers}, nil
}

func resultNode(operation *pb.Operation, result timecache.Result) any {
	if result.Err != nil {
		return object{"error": result.Err}
	}
	switch operation.Request.(type) {
	case *pb.Operation_Put:
		return object{"put": &pb.PutResponse{Version: result.Version, Previous: entryProto(result.Entry)}}
	case *pb.Operation_Get:
		return object{"get": &pb.GetResponse{Entry: entryProto(result.Entry)}}
	case *pb.Operation_Remove:
		return object{"remove": &pb.RemoveResponse{Removed: result.Found, Previous: entryProto(result.Entry)}}
	case *pb.Operation_Contains:
		return object{"contains": &pb.ContainsResponse{Contains: result.Found}}
	case *pb.Operation_Touch:
		return object{"touch": &pb.TouchResponse{Touched: result.Found, Version: result.Version}}
	case *pb.Operation_Append:
		return object{"append": &pb.AppendResponse{Version: result.Version, ValueBytes: uint64(result.Number), Created: result.Created}}
	case *pb.Operation_Combine:
		return object{"combine": &pb.CombineResponse{Result: result.Number, Version: result.Version,
			Created: result.Created, Removed: result.Removed}}
	default:
		return object{"gather": &pb.GatherResponse{Parts: partsProto(result.Parts), Version: result.Version,
			Count: uint32(result.Number), Duplicate: result.Duplicate}}
	}
}

func settle(ctx context.Context, client *timecache.Client, request *pb.SettleExpiredRequest) (any, error) {
	var settlements []timecache.Settlement
	for _, one := range request.Settlements {
		settlement := timecache.Settlement{EventID: one.EventId, Attempt: one.Attempt}
		switch action := one.Action.(type) {
		case *pb.Settlement_Nack:
			settlement.Action = timecache.Nack(action.Nack.Delay.AsDuration())
		case *pb.Settlement_PutBack:
			settlement.Action = putBack(action.PutBack.Ttl)
		}
		settlements = append(settlements, settlement)
	}
	results, err := client.Settle(ctx, request.Group, settlements)
	answers := make([]any, len(results))
	for i, result := range results {
		if answers[i] = (object{"version": result.Version}); result.Err != nil {
			answers[i] = object{"error": result.Err}
		}
	}
	return object{"results": answers}, err
}

func putBack(ttl *durationpb.Duration) timecache.Action {
	if ttl == nil {
		return timecache.PutBack()
	}
	return timecache.PutBack(timecache.TTL(ttl.AsDuration()))
}

// events is a watch or a member.
type events struct {
	member     bool
	namespaces []string
	cancel     context.CancelFunc
	next       func() (*timecache.WatchBatch, error, bool)
	stop       func()
	unread     []timecache.ExpiredEvent
	lost       uint64
	watermarks map[string]time.Time
	tokens     object
	told       map[string]bool // Of what is going to die.
}

func (e *events) close() error {
	e.cancel()
	e.stop()
	return nil
}

// read takes one batch.
func (e *events) read() error {
	batch, err, _ := e.next()
	if err != nil {
		return err
	}
	e.lost += batch.Lost
	e.watermarks[batch.Namespace] = batch.Watermark
	e.tokens[batch.Namespace] = batch.ResumeToken
	for _, event := range batch.Events {
		id := fmt.Sprint(event.Namespace, event.Key, event.Version, event.Deadline)
		if event.Cause != timecache.CauseExpiring || !e.told[id] {
			e.unread = append(e.unread, event)
		}
		e.told[id] = true
	}
	return nil
}

// begin opens it, and waits until it stands.
func (r *run) begin(step object, name string, namespaces []string, member bool,
	open func(context.Context) iter.Seq2[*timecache.WatchBatch, error]) error {
	ctx, cancel := context.WithCancel(r.ctx)
	e := &events{member: member, namespaces: namespaces, cancel: cancel, watermarks: map[string]time.Time{},
		tokens: object{}, told: map[string]bool{}}
	e.next, e.stop = iter.Pull2(open(ctx))
	r.open[name] = e
	for {
		err := e.read()
		if want, has := step["error"]; has {
			return r.match("error", want, err)
		}
		if err != nil || len(e.watermarks) == len(namespaces) {
			return err
		}
	}
}

func (r *run) watch(name string, step object) error {
	err := known(step, "watch", "watch_expiring", "args", "error")
	arguments, failure := r.arguments(step)
	if err = errors.Join(err, failure); err != nil {
		return err
	}
	tokens, arguments := take(arguments, "resume_tokens")
	if _, expiring := step["watch_expiring"]; expiring {
		request, err := filled(&pb.WatchExpiringRequest{Namespaces: nil}, arguments)
		if err != nil || tokens != nil {
			return errors.Join(err, known(object{"resume_tokens": tokens}))
		}
		namespaces := orMain(request.Namespaces)
		return r.begin(step, name, namespaces, false, func(ctx context.Context) iter.Seq2[*timecache.WatchBatch, error] {
			return r.client.WatchExpiring(ctx, request.LeadTime.AsDuration(), timecache.ExpiringOptions{
				Namespaces: namespaces, KeyPrefix: string(request.KeyPrefix), KeysOnly: request.KeysOnly,
				Heartbeat: request.HeartbeatInterval.AsDuration()})
		})
	}
	request, err := filled(&pb.WatchExpiredRequest{}, arguments)
	if err != nil {
		return err
	}
	options := timecache.WatchOptions{Namespaces: orMain(request.Namespaces), Start: timecache.Start(request.Start),
		ResumeTokens: map[string][]byte{}, KeyPrefix: string(request.KeyPrefix), KeysOnly: request.KeysOnly,
		Heartbeat: request.HeartbeatInterval.AsDuration(), FailOnLoss: request.FailOnLoss}
	given, _ := tokens.(object)
	for namespace, token := range given {
		if options.ResumeTokens[namespace], err = toBytes(token); err != nil {
			return err
		}
	}
	return r.begin(step, name, options.Namespaces, false, func(ctx context.Context) iter.Seq2[*timecache.WatchBatch, error] {
		return r.client.Watch(ctx, options)
	})
}

func orMain(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{"main"}
	}
	return namespaces
}

func (r *run) member(name string, step object) error {
	err := known(step, "member", "args", "error")
	arguments, failure := r.arguments(step)
	request, refusal := filled(&pb.ConsumeExpiredRequest{}, arguments)
	if err = errors.Join(err, failure, refusal); err != nil {
		return err
	}
	options := timecache.ConsumeOptions{Namespaces: orMain(request.Namespaces), Start: timecache.Start(request.Start),
		MaxInFlight: int(request.GetMaxInFlight()), KeysOnly: request.KeysOnly,
		Heartbeat: request.HeartbeatInterval.AsDuration()}
	return r.begin(step, name, options.Namespaces, true, func(ctx context.Context) iter.Seq2[*timecache.WatchBatch, error] {
		return r.client.Consume(ctx, request.Group, options)
	})
}

// count is how many elements an expected list has.
func count(expected any) int {
	switch expected := expected.(type) {
	case []any:
		return len(expected)
	case object:
		return count(expected["unordered"])
	}
	return 0
}

func (r *run) events(name string, step object) error {
	if err := known(step, "events", "expect", "lost", "save", "error"); err != nil {
		return err
	}
	e, is := r.open[name].(*events)
	if !is {
		return fmt.Errorf("%s is no watch", name)
	}
	now, err := r.clock.Now(r.ctx)
	if err != nil {
		return err
	}
	complete := func() bool {
		if e.member {
			return len(e.unread) >= count(step["expect"])
		}
		for _, namespace := range e.namespaces {
			if e.watermarks[namespace].Before(now) {
				return false
			}
		}
		return true
	}
	timer := time.AfterFunc(10*time.Second, e.cancel)
	defer timer.Stop()
	_, ends := step["error"]
	for ends || !complete() {
		if err := e.read(); err != nil {
			return r.outcome(step, nil, err)
		}
	}
	var list []any
	for _, namespace := range e.namespaces {
		for _, event := range e.unread {
			if event.Namespace == namespace {
				list = append(list, eventProto(event))
			}
		}
	}
	wantLost, has := step["lost"]
	if !has {
		wantLost = json.Number("0")
	}
	if err := r.match("lost", wantLost, e.lost); err != nil {
		return err
	}
	e.unread, e.lost = nil, 0
	if err := r.match("events", step["expect"], list); err != nil {
		return err
	}
	return r.outcome(object{"save": step["save"]}, object{"events": list, "resume_token": e.tokens[e.namespaces[0]],
		"resume_tokens": e.tokens}, nil)
}

// work is a worker.
type work struct {
	stop    context.CancelFunc
	end     chan error
	handled chan timecache.ExpiredEvent
}

func (w *work) close() error {
	w.stop()
	return <-w.end
}

func (r *run) worker(name string, step object) error {
	err := known(step, "worker", "args", "handler")
	arguments, failure := r.arguments(step)
	handler, refusal := r.resolve(step["handler"])
	if err = errors.Join(err, failure, refusal, known(arguments, "namespace", "group", "start", "keys_only",
		"max_in_flight", "concurrency", "retry_delay")); err != nil {
		return err
	}
	namespace, rest := take(arguments, "namespace")
	concurrency, rest := take(rest, "concurrency")
	delay, rest := take(rest, "retry_delay")
	request, err := filled(&pb.ConsumeExpiredRequest{}, rest)
	if err != nil {
		return err
	}
	client := r.client
	if namespace != nil {
		client = client.In(namespace.(string))
	}
	options := timecache.WorkerOptions{Start: timecache.Start(request.Start), KeysOnly: request.KeysOnly,
		MaxInFlight: int(request.GetMaxInFlight())}
	if concurrency != nil {
		many, _ := concurrency.(json.Number).Int64()
		options.Concurrency = int(many)
	}
	if delay != nil {
		if options.RetryDelay, err = parseDuration(delay.(string)); err != nil {
			return err
		}
	}
	says, _ := handler.(object)
	var mu sync.Mutex
	calls := map[string]int{}
	w := &work{end: make(chan error, 1), handled: make(chan timecache.ExpiredEvent, 10_000)}
	worker := client.Worker(request.Group, func(_ context.Context, event *timecache.ExpiredEvent) error {
		defer func() { w.handled <- *event }()
		mu.Lock()
		defer mu.Unlock()
		actions, _ := says[event.Key].([]any)
		if len(actions) == 0 {
			return nil
		}
		action := actions[min(calls[event.Key], len(actions)-1)].(object)
		calls[event.Key]++
		if text, throws := action["throw"]; throws {
			return errors.New(text.(string))
		}
		settlement := &pb.Settlement{}
		if err := fill(settlement, action); err != nil {
			panic(err)
		}
		switch said := settlement.Action.(type) {
		case *pb.Settlement_Nack:
			return timecache.Nack(said.Nack.Delay.AsDuration()).Because(nil)
		case *pb.Settlement_PutBack:
			return putBack(said.PutBack.Ttl).Because(nil)
		}
		return nil
	}, options)
	members := func() uint64 {
		group, err := client.GetGroup(r.ctx, request.Group, timecache.IncludeStatistics)
		if err != nil {
			return 0
		}
		return group.Statistics.GetMembers()
	}
	before := members()
	ctx, stop := context.WithCancel(r.ctx)
	w.stop = stop
	r.open[name] = w
	go func() { w.end <- worker.Run(ctx) }()
	for begin := time.Now(); members() <= before; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			return fmt.Errorf("the worker is no member of its group")
		}
	}
	return nil
}

func (r *run) handled(name string, step object) error {
	if err := known(step, "handled", "expect"); err != nil {
		return err
	}
	w, is := r.open[name].(*work)
	if !is {
		return fmt.Errorf("%s is no worker", name)
	}
	var list []any
	timeout := time.After(10 * time.Second)
	for len(list) < count(step["expect"]) {
		select {
		case event := <-w.handled:
			list = append(list, eventProto(event))
		case <-timeout:
			return fmt.Errorf("after 10 s only these were handled: %v", list)
		}
	}
	return r.match("handled", step["expect"], list)
}

func (r *run) close(name string, step object) error {
	one, has := r.open[name]
	if !has {
		return fmt.Errorf("%s is not open", name)
	}
	delete(r.open, name)
	return errors.Join(known(step, "close"), one.close())
}

// What the client gives, as the protos have it.

func namespaceProto(n timecache.Namespace) *pb.Namespace {
	return &pb.Namespace{Name: n.Name, Options: timecache.NamespaceOptionsProto(&n.Options), Statistics: n.Statistics,
		BucketWidth: durationpb.New(n.BucketWidth)}
}

func groupProto(g timecache.Group) *pb.Group {
	return &pb.Group{Name: g.Name, Namespace: g.Namespace, Options: timecache.GroupOptionsProto(&g.Options),
		Statistics: g.Statistics, CreatedBy: g.CreatedBy}
}

func entryProto(e *timecache.Entry) *pb.Entry {
	if e == nil {
		return nil
	}
	return &pb.Entry{Key: []byte(e.Key), Value: e.Value, OmittedValueBytes: e.OmittedValueBytes, Version: e.Version,
		PutTime: timestamppb.New(e.PutTime), Deadline: timestamppb.New(e.Deadline), Parts: partsProto(e.Parts)}
}

func partsProto(parts *timecache.GatheredParts) *pb.GatheredParts {
	if parts == nil {
		return nil
	}
	result := &pb.GatheredParts{ExpectedParts: uint32(parts.Expected.Count)}
	for _, part := range parts.Parts {
		result.Parts = append(result.Parts, &pb.GatheredPart{Name: []byte(part.Name), Value: part.Value})
	}
	for _, name := range parts.Expected.Names {
		result.ExpectedNames = append(result.ExpectedNames, []byte(name))
	}
	return result
}

func eventProto(e timecache.ExpiredEvent) *pb.ExpiredEvent {
	return &pb.ExpiredEvent{Namespace: e.Namespace, Key: []byte(e.Key), Value: e.Value,
		OmittedValueBytes: e.OmittedValueBytes, Version: e.Version, PutTime: timestamppb.New(e.PutTime),
		Deadline: timestamppb.New(e.Deadline), DeathTime: timestamppb.New(e.DeathTime),
		DeliveredAt: timestamppb.New(e.DeliveredAt), Cause: pb.ExpiryCause(e.Cause), EventId: e.EventID,
		Attempt: e.Attempt, Parts: partsProto(e.Parts)}
}

// code is the name of an error's code in the protos.
func code(err error) string {
	name := status.Code(err).String()
	var upper strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			upper.WriteByte('_')
		}
		upper.WriteRune(r)
	}
	if status.Code(err) == codes.Canceled {
		return "CANCELLED"
	}
	return strings.ToUpper(upper.String())
}
