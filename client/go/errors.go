package timecache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Error is why a call, or one operation of a batch, failed.
//
//	var failure *timecache.Error
//	if errors.As(err, &failure) && failure.Code == codes.ResourceExhausted { ... }
//	if errors.Is(err, timecache.VersionMismatch) { ... }
type Error struct {
	// Code is gRPC's. Without a Reason it is the client's own gRPC's.
	Code codes.Code
	// MaybeApplied says whether the request can have reached the server and been done.
	// False: it was not, by any of the call's attempts: the server refused it, or there was
	// no connection to send it on.
	MaybeApplied bool
	// Message is for people.
	Message string
	// Reason is the server's, such as [KeyExists]; a later server may have more of them.
	// Empty where the error is not the server's.
	Reason Reason
	// Metadata says more about the reason: the "namespace" that a watch cannot go on in,
	// how many events are "lost".
	Metadata map[string]string
	// Violations are the fields that an InvalidArgument is about.
	Violations []FieldViolation
	// RetryDelay is how long the server says to wait before the call is tried again:
	// with [MaxOperationRate] and [JournalBacklog]. Otherwise 0.
	RetryDelay time.Duration
	// RequestID stands in the server's log lines about the call: that of [RequestID], else of the
	// shared stream, or one of the server's. Empty for an operation of a batch, and where the call
	// did not reach the server.
	RequestID string

	cause error
}

// FieldViolation is a field that the server refused.
type FieldViolation struct {
	// Field is its path in the request, such as "operations[3].put.key".
	Field string
	// Description says what is wrong with it.
	Description string
}

// Error says code, reason and message.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("timecache: ")
	text.WriteString(e.Code.String())
	if e.Reason != "" {
		fmt.Fprintf(&text, " (%s)", string(e.Reason))
	}
	if e.Message != "" {
		text.WriteString(": " + e.Message)
	}
	return text.String()
}

// Is makes errors.Is(err, reason) tell whether the server refused for this Reason.
func (e *Error) Is(target error) bool {
	reason, is := target.(Reason)
	return is && reason != "" && reason == e.Reason
}

// Unwrap returns what is behind it: [context.Canceled] or [context.DeadlineExceeded] where
// the call ended so on this side, or the error of gRPC.
func (e *Error) Unwrap() error {
	switch {
	case e.Reason == "" && e.Code == codes.Canceled:
		return context.Canceled
	case e.Reason == "" && e.Code == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return e.cause
}

// GRPCStatus makes status.FromError and status.Code understand the error.
func (e *Error) GRPCStatus() *status.Status {
	if s, ok := status.FromError(e.cause); ok && e.cause != nil {
		return s
	}
	return status.New(e.Code, e.Message)
}

// newError takes an error of gRPC's. Nil: nil.
func newError(err error, trailer metadata.MD) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	failure := fromStatus(s)
	failure.cause = err
	failure.MaybeApplied = failure.MaybeApplied || failure.Reason == "" && failure.Code != codes.Unimplemented
	if ids := trailer.Get("x-request-id"); len(ids) > 0 {
		failure.RequestID = ids[0]
	}
	return failure
}

func fromStatus(s *status.Status) *Error {
	failure := &Error{Code: s.Code(), Message: s.Message()}
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			failure.Reason, failure.Metadata = Reason(detail.Reason), detail.Metadata
			// The server refuses before it does anything; but for what it did not foresee, and
			// where it has lost the ownership while the call waited.
			failure.MaybeApplied = failure.Reason == InternalError || failure.Reason == OwnershipLost
		case *errdetails.BadRequest:
			for _, violation := range detail.FieldViolations {
				failure.Violations = append(failure.Violations,
					FieldViolation{violation.Field, violation.Description})
			}
		case *errdetails.RetryInfo:
			failure.RetryDelay = detail.RetryDelay.AsDuration()
		}
	}
	return failure
}

// fromRPC takes the error of one operation of a batch; nil where there is none.
func fromRPC(s *rpcstatus.Status) error {
	if s == nil || s.Code == 0 {
		return nil
	}
	failure := fromStatus(status.FromProto(s))
	failure.cause = status.ErrorProto(s)
	return failure
}

// connectionLost says whether the server is stopping or the connection to it broke, which
// gRPC reports by one of several codes: the same again may succeed.
func (e *Error) connectionLost() bool {
	switch e.Code {
	case codes.Unavailable:
		return true
	case codes.Internal, codes.Unknown, codes.Canceled:
		return e.Reason == ""
	}
	return false
}

// messageTooLarge says whether a message came that the connection does not take.
func (e *Error) messageTooLarge() bool {
	return e.Code == codes.ResourceExhausted && e.Reason == "" && strings.Contains(e.Message, "larger than max")
}

// throttled says whether the server, or a proxy, ended the call to slow this client down, by
// RST_STREAM with ENHANCE_YOUR_CALM: the same later may succeed.
func (e *Error) throttled() bool {
	return e.Code == codes.ResourceExhausted && e.Reason == "" && !e.messageTooLarge()
}

// invalid is an error about what the caller gave.
func invalid(format string, arguments ...any) *Error {
	return &Error{Code: codes.InvalidArgument, Message: fmt.Sprintf(format, arguments...)}
}

// unlike is an answer that does not fit the request.
func unlike(what string) *Error {
	return &Error{Code: codes.Internal, Message: what + ": is the server of this version?", MaybeApplied: true}
}
