package timecache_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// The calls of scenarios.

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
		if request.Atomic && method == "pipeline" {
			return nil, nil, fmt.Errorf("a pipeline is not atomic")
		}
		answer, failure = many(ctx, client, request.Operations, method == "pipeline", request.Atomic)
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
	case "get_deaths":
		request, err := filled(&pb.GetDeathsRequest{}, arguments)
		options := timecache.DeathsOptions{MaxBars: int(request.MaxBars), Within: request.Within.AsDuration()}
		if request.Within != nil && options.Within == 0 {
			options.Within = -1 // In Go 0 means all.
		}
		deaths, failure := client.GetDeaths(ctx, request.Name, options)
		return deaths, failure, err
	case "create_group":
		request, err := filled(&pb.CreateGroupRequest{}, arguments)
		group, failure := client.CreateGroup(ctx, request.Name, timecache.GroupOptionsFrom(request.Options),
			position(request.Start))
		return groupProto(group), failure, err
	case "seek_group":
		request, err := filled(&pb.SeekGroupRequest{}, arguments)
		result, failure := client.SeekGroup(ctx, request.Name, position(request.Position),
			timecache.DropOption(request.DropUnsettled))
		return &pb.SeekGroupResponse{Unsettled: result.Unsettled, Dropped: result.Dropped}, failure, err
	case "list_members":
		request, err := filled(&pb.ListMembersRequest{}, arguments)
		members, failure := client.ListMembers(ctx, request.Name)
		return &pb.ListMembersResponse{Members: members}, failure, err
	case "list_unsettled":
		request, err := filled(&pb.ListUnsettledRequest{}, arguments)
		answer := &pb.ListUnsettledResponse{}
		options := timecache.UnsettledOptions{KeyPrefix: string(request.KeyPrefix), IncludeValues: request.IncludeValues}
		for one, failure := range client.ListUnsettled(ctx, request.Name, options) {
			if failure != nil {
				return nil, failure, err
			}
			answer.Events = append(answer.Events, unsettledProto(one))
		}
		return answer, nil, err
	case "dead_letters":
		request, err := filled(&pb.ScanRequest{}, arguments)
		letters := []any{}
		for entry, failure := range client.Scan(ctx, timecache.Prefix(request.KeyPrefix)) {
			if failure != nil {
				return nil, failure, err
			}
			letter, failure := timecache.DecodeDeadLetter(&entry)
			if failure != nil {
				return nil, nil, failure
			}
			letters = append(letters, letterProto(letter))
		}
		return object{"letters": letters}, nil, err
	case "fetch_expired":
		request, err := filled(&pb.FetchExpiredRequest{}, arguments)
		most := int(request.GetMaxEvents())
		if request.MaxEvents != nil && most == 0 {
			most = -1 // In Go 0 means the default.
		}
		batch, failure := client.FetchExpired(ctx, request.Group, timecache.FetchOptions{
			Start: timecache.Start(request.Start), MaxEvents: most, Wait: request.Wait.AsDuration(),
			KeysOnly: request.KeysOnly})
		if failure != nil {
			return nil, failure, err
		}
		answer := &pb.FetchExpiredResponse{Watermark: timestamppb.New(batch.Watermark), Lost: batch.Lost,
			DeliveredWatermark: timestamppb.New(batch.Delivered)}
		for _, event := range batch.Events {
			answer.Events = append(answer.Events, eventProto(event))
		}
		return answer, nil, err
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
	case "get_hot_keys":
		request, err := filled(&pb.GetHotKeysRequest{}, arguments)
		keys, failure := client.GetHotKeys(ctx, request.Name, int(request.MaxKeys))
		return keys, failure, err
	case "who_am_i":
		_, err := filled(&pb.WhoAmIRequest{}, arguments)
		identity, failure := client.WhoAmI(ctx)
		return identity, failure, err
	case "list_slow_calls":
		_, err := filled(&pb.ListSlowCallsRequest{}, arguments)
		calls, failure := client.ListSlowCalls(ctx)
		return calls, failure, err
	case "list_connections":
		_, err := filled(&pb.ListConnectionsRequest{}, arguments)
		connections, failure := client.ListConnections(ctx)
		return &pb.ListConnectionsResponse{Connections: connections}, failure, err
	case "close_connection":
		request, err := filled(&pb.CloseConnectionRequest{}, arguments)
		return nil, client.CloseConnection(ctx, request.Id), err
	case "get_server":
		_, err := filled(&pb.GetServerRequest{}, arguments)
		server, failure := client.GetServer(ctx)
		return server, failure, err
	case "get_cluster":
		_, err := filled(&pb.GetClusterRequest{}, arguments)
		cluster, failure := client.GetCluster(ctx)
		return cluster, failure, err
	case "hand_over":
		request, err := filled(&pb.HandOverRequest{}, arguments)
		to, failure := client.HandOver(ctx, request.To)
		return &pb.HandOverResponse{To: to}, failure, err
	}
	return nil, nil, fmt.Errorf("the runner does not know the call %q", method)
}

func position(p *pb.GroupPosition) timecache.Position {
	switch p := p.GetPosition().(type) {
	case *pb.GroupPosition_Start:
		return timecache.Start(p.Start)
	case *pb.GroupPosition_Time:
		return timecache.FromTime(p.Time.AsTime())
	case *pb.GroupPosition_ResumeToken:
		return timecache.AfterToken(p.ResumeToken)
	}
	return nil
}

// operationOptions are those of an operation; who needs them converts them to its kind.
func operationOptions(o *pb.Operation) (options []any) {
	ttl := func(d *durationpb.Duration) {
		if d != nil {
			options = append(options, timecache.TTL(d.AsDuration()))
		}
	}
	expireAt := func(at *timestamppb.Timestamp) {
		if at != nil {
			options = append(options, timecache.ExpireAt(at.AsTime()))
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
		expireAt(o.Put.ExpireAt)
		flag(o.Put.AllowPast, timecache.AllowPast)
		flag(o.Put.GetCondition() != 0, timecache.Condition(o.Put.GetCondition()))
		if v, is := o.Put.Precondition.(*pb.PutRequest_IfVersion); is {
			version(&v.IfVersion)
		}
		flag(o.Put.ReturnPrevious, timecache.ReturnPrevious)
		flag(o.Put.KeepDeadline, timecache.KeepDeadline)
		flag(len(o.Put.IdempotencyId) > 0, timecache.IdempotencyID(o.Put.IdempotencyId))
		flag(o.Put.Traceparent != "", timecache.EntryTraceparent(o.Put.Traceparent))
	case *pb.Operation_Get:
		flag(o.Get.GetTouch(), timecache.WithTouch)
		flag(o.Get.Touch != nil && !o.Get.GetTouch(), timecache.WithoutTouch)
	case *pb.Operation_Remove:
		version(o.Remove.IfVersion)
		flag(o.Remove.ReturnPrevious, timecache.ReturnPrevious)
		flag(len(o.Remove.IdempotencyId) > 0, timecache.IdempotencyID(o.Remove.IdempotencyId))
	case *pb.Operation_Contains:
		flag(o.Contains.GetCondition() != 0, timecache.Condition(o.Contains.GetCondition()))
		if v, is := o.Contains.Precondition.(*pb.ContainsRequest_IfVersion); is {
			version(&v.IfVersion)
		}
	case *pb.Operation_Touch:
		ttl(o.Touch.Ttl)
		expireAt(o.Touch.ExpireAt)
		flag(o.Touch.AllowPast, timecache.AllowPast)
		flag(o.Touch.NamespaceTtl, timecache.NamespaceTTL)
		version(o.Touch.IfVersion)
	case *pb.Operation_Append:
		ttl(o.Append.Ttl)
		flag(o.Append.GetCondition() != 0, timecache.Condition(o.Append.GetCondition()))
		if v, is := o.Append.Precondition.(*pb.AppendRequest_IfVersion); is {
			version(&v.IfVersion)
		}
		flag(o.Append.Touch, timecache.WithTouch)
		flag(len(o.Append.IdempotencyId) > 0, timecache.IdempotencyID(o.Append.IdempotencyId))
		flag(o.Append.Traceparent != "", timecache.EntryTraceparent(o.Append.Traceparent))
	case *pb.Operation_Combine:
		ttl(o.Combine.Ttl)
		version(o.Combine.IfVersion)
		flag(o.Combine.Touch, timecache.WithTouch)
		flag(len(o.Combine.IdempotencyId) > 0, timecache.IdempotencyID(o.Combine.IdempotencyId))
		flag(o.Combine.Traceparent != "", timecache.EntryTraceparent(o.Combine.Traceparent))
		flag(o.Combine.Initial != 0, timecache.Initial(o.Combine.Initial))
		flag(o.Combine.RemoveIfZero, timecache.RemoveIfZero)
	case *pb.Operation_Gather:
		ttl(o.Gather.Ttl)
		flag(o.Gather.Touch, timecache.WithTouch)
		flag(len(o.Gather.IdempotencyId) > 0, timecache.IdempotencyID(o.Gather.IdempotencyId))
		flag(o.Gather.Traceparent != "", timecache.EntryTraceparent(o.Gather.Traceparent))
		flag(o.Gather.KeepFirst, timecache.KeepFirst)
		flag(o.Gather.Remember != nil, timecache.Remember(o.Gather.Remember.AsDuration()))
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
		found, err := client.Contains(ctx, string(o.Contains.Key), as[timecache.ContainsOption](options)...)
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
func many(ctx context.Context, client *timecache.Client, requests []*pb.Operation, piped, atomic bool) (any, error) {
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
			operation = timecache.ContainsOperation(string(o.Contains.Key), as[timecache.ContainsOption](options)...)
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
		results, err = client.Execute(ctx, operations, timecache.AtomicOption(atomic))
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
		settlement := timecache.Settlement{DeliveryToken: string(one.DeliveryToken)}
		switch action := one.Action.(type) {
		case *pb.Settlement_Nack:
			settlement.Action = nack(action.Nack)
		case *pb.Settlement_PutBack:
			settlement.Action = putBack(action.PutBack)
		case *pb.Settlement_Terminate:
			settlement.Action = timecache.Terminate().WithReason(action.Terminate.Reason)
		case *pb.Settlement_Extend:
			settlement.Action = timecache.Extend()
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

func nack(said *pb.Nack) timecache.Action {
	delay := timecache.GroupDelay
	if said.Delay != nil {
		delay = said.Delay.AsDuration()
	}
	return timecache.Nack(delay).WithReason(said.Reason)
}

func putBack(said *pb.PutBack) timecache.Action {
	var options []timecache.PutBackOption
	if said.Ttl != nil {
		options = append(options, timecache.TTL(said.Ttl.AsDuration()))
	}
	if said.ExpireAt != nil {
		options = append(options, timecache.ExpireAt(said.ExpireAt.AsTime()))
	}
	return timecache.PutBack(append(options, timecache.PastOption(said.AllowPast))...)
}
