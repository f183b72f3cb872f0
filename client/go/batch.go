package timecache

import (
	"context"

	pb "timecached.dev/client/go/gen/timecache/v1"
)

// The limits of one request of [Client.Execute].
const (
	// MaxOperations is how many operations it may have.
	MaxOperations = 4096
	// MaxRequestBytes is how large it may be, on the wire.
	MaxRequestBytes = 16<<20 + 64<<10
)

// Operation is to be done together with others: as the method of the same name of [Client],
// with the same options but those of the kind [CallOption]. A value; it refers to the bytes
// that it was made with.
type Operation struct {
	request *pb.Operation
	err     error
	trace   *bool // Whether it keeps a traceparent; nil: as the call says.
}

func operation(request *pb.Operation, s *settings) Operation {
	if s.metadata != nil || s.repeatable || s.batching != nil {
		return Operation{err: invalid("a CallOption goes with a call, not with an operation of one")}
	}
	if err := s.conflict(); err != nil {
		return Operation{err: err}
	}
	return Operation{request: request, trace: s.traceEntry}
}

// isSafe says whether the operation may be done twice.
func isSafe(operation *pb.Operation) bool {
	switch o := operation.Request.(type) {
	case *pb.Operation_Put:
		return len(o.Put.IdempotencyId) > 0
	case *pb.Operation_Remove:
		return len(o.Remove.IdempotencyId) > 0
	case *pb.Operation_Append:
		return len(o.Append.IdempotencyId) > 0
	case *pb.Operation_Combine:
		return len(o.Combine.IdempotencyId) > 0
	case *pb.Operation_Gather:
		return len(o.Gather.IdempotencyId) > 0
	}
	return true // Get, Contains, Touch.
}

// PutOperation is a [Client.Put].
func PutOperation(key string, value []byte, options ...PutOption) Operation {
	s := collect(options)
	return operation(s.put(key, value), s)
}

// GetOperation is a [Client.Get].
func GetOperation(key string, options ...GetOption) Operation {
	s := collect(options)
	return operation(s.get(key), s)
}

// RemoveOperation is a [Client.Remove].
func RemoveOperation(key string, options ...RemoveOption) Operation {
	s := collect(options)
	return operation(s.remove(key), s)
}

// ContainsOperation is a [Client.Contains].
func ContainsOperation(key string, options ...ContainsOption) Operation {
	s := collect(options)
	return operation(s.contains(key), s)
}

// TouchOperation is a [Client.Touch].
func TouchOperation(key string, options ...TouchOption) Operation {
	s := collect(options)
	return operation(s.touchRequest(key), s)
}

// AppendOperation is a [Client.Append].
func AppendOperation(key string, value []byte, options ...AppendOption) Operation {
	s := collect(options)
	return operation(s.append(key, value), s)
}

// CombineOperation is a [Client.Combine].
func CombineOperation(key string, operand Operand, options ...CombineOption) Operation {
	s := collect(options)
	return operation(s.combine(key, operand), s)
}

// GatherOperation is a [Client.Gather].
func GatherOperation(key, part string, value []byte, expected Expectation, options ...GatherOption) Operation {
	s := collect(options)
	return operation(s.gather(key, part, value, expected), s)
}

// Result is what became of one operation.
type Result struct {
	// Err is why it changed nothing: as the call of the same name would have failed. And
	// ResourceExhausted (MaxResponseBytes) for an entry that did not fit into the answer
	// any more: ask for it again. The rest is then zero.
	Err error
	// Found says whether the key was there: of Get, Remove, Contains and Touch.
	Found bool
	// Version is the entry's: of Put, Append, Combine and Gather the new one, 0 if it is
	// gone. Of a Touch that found it, and of a duplicate, the one that stays.
	Version uint64
	// Entry is what Get found; what Put replaced or Remove removed, and was to return.
	Entry *Entry
	// Number is the value's new length, of Append; the result, of Combine; how many parts
	// are in, of Gather.
	Number int64
	// Created says, of Append and Combine, whether the key was not there, and is now.
	Created bool
	// Removed says, of Combine, whether it is not there now, as the result was 0.
	Removed bool
	// Duplicate says, of Gather, whether the part was in, with this value.
	Duplicate bool
	// Parts are all of them, of the Gather that brought the last one.
	Parts *GatheredParts
}

// Execute does many operations in one round trip: a result for each, in their order. Not a
// transaction, unless [Atomic] is given: each succeeds or fails by itself, and others may come
// between; those of one key apply in their order. No operations: no call. An error: none of them
// could be tried, or, as with any call, nobody knows. Above MaxOperations or MaxRequestBytes:
// InvalidArgument. Tried again as [RetryPolicy] says where all operations are safe to repeat. With
// [Options.OwnerRouting] parts of it may fail: each of their operations has the error then.
func (c *Client) Execute(ctx context.Context, operations []Operation, options ...ExecuteOption) ([]Result, error) {
	if len(operations) == 0 {
		return nil, nil
	}
	s := collect(options)
	request := &pb.ExecuteRequest{Namespace: c.options.Namespace,
		Operations: make([]*pb.Operation, len(operations)), Atomic: s.atomic}
	isRepeatable := true
	for i, operation := range operations {
		if operation.err != nil {
			return nil, operation.err
		}
		if operation.request == nil {
			return nil, invalid("operations[%d]: is none", i)
		}
		request.Operations[i] = operation.request
		isRepeatable = isRepeatable && isSafe(operation.request)
		if operation.trace != nil {
			if s.tracedOperations == nil {
				s.tracedOperations = make([]*bool, len(operations))
			}
			s.tracedOperations[i] = operation.trace
		}
	}
	if c.owners != nil {
		return c.executeAtOwners(ctx, request, s, isRepeatable)
	}
	response, err := call[pb.ExecuteResponse](ctx, c, pb.TimeCacheService_Execute_FullMethodName, request, s, isRepeatable)
	if err != nil {
		return nil, err
	}
	results, failure := toResults(request, response)
	if failure != nil {
		return nil, failure
	}
	return results, nil
}

func toResults(request *pb.ExecuteRequest, response *pb.ExecuteResponse) ([]Result, *Error) {
	if len(response.Results) != len(request.Operations) {
		return nil, unlike("another number of results than there were operations")
	}
	results := make([]Result, len(response.Results))
	for i, result := range response.Results {
		results[i] = toResult(request.Operations[i], result)
	}
	return results, nil
}

func toResult(operation *pb.Operation, answer *pb.OperationResult) Result {
	switch result := answer.Result.(type) {
	case *pb.OperationResult_Error:
		if err := fromRPC(result.Error); err != nil {
			return Result{Err: err}
		}
	case *pb.OperationResult_Put:
		return Result{Version: result.Put.Version,
			Entry: toEntry(result.Put.Previous, operation.GetPut().GetKey())}
	case *pb.OperationResult_Get:
		entry := toEntry(result.Get.Entry, operation.GetGet().GetKey())
		return Result{Found: entry != nil, Entry: entry}
	case *pb.OperationResult_Remove:
		return Result{Found: result.Remove.Removed,
			Entry: toEntry(result.Remove.Previous, operation.GetRemove().GetKey())}
	case *pb.OperationResult_Contains:
		return Result{Found: result.Contains.Contains}
	case *pb.OperationResult_Touch:
		return Result{Found: result.Touch.Touched, Version: result.Touch.Version}
	case *pb.OperationResult_Append:
		return Result{Version: result.Append.Version, Number: int64(result.Append.ValueBytes),
			Created: result.Append.Created}
	case *pb.OperationResult_Combine:
		return Result{Version: result.Combine.Version, Number: result.Combine.Result,
			Created: result.Combine.Created, Removed: result.Combine.Removed}
	case *pb.OperationResult_Gather:
		return Result{Version: result.Gather.Version, Number: int64(result.Gather.Count),
			Duplicate: result.Gather.Duplicate, Parts: toParts(result.Gather.Parts)}
	}
	return Result{Err: unlike("an answer that is none to an operation")}
}
