package timecache_test

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// What the client answers as the messages that scenarios expect.

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
		PutTime: timestamppb.New(e.PutTime), Deadline: timestamppb.New(e.Deadline), Parts: partsProto(e.Parts),
		CreateTime: timeProto(e.CreateTime), OwnTtl: ttlProto(e.OwnTTL)}
}

func timeProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func ttlProto(ttl time.Duration) *durationpb.Duration {
	if ttl == 0 {
		return nil
	}
	return durationpb.New(ttl)
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
		Attempt: e.Attempt, Returns: e.Returns, DeliveryToken: []byte(e.DeliveryToken),
		LastReason: e.LastReason, Parts: partsProto(e.Parts),
		CreateTime: timeProto(e.CreateTime), OwnTtl: ttlProto(e.OwnTTL), Traceparent: e.Traceparent}
}

func letterProto(letter timecache.DeadLetter) *pb.ExpiredEvent {
	event := eventProto(letter.Event)
	event.DeadLetter = &pb.DeadLetter{Group: letter.Group, Attempts: letter.Attempts,
		Reason: pb.DeadLetterReason(letter.Reason), Time: timestamppb.New(letter.Time), ReasonText: letter.ReasonText}
	return event
}

func unsettledProto(one timecache.UnsettledEvent) *pb.UnsettledEvent {
	return &pb.UnsettledEvent{Event: eventProto(one.Event), State: pb.UnsettledState(one.State), MemberId: one.MemberID,
		Since: timeProto(one.Since), Due: timeProto(one.Due)}
}

func changeProto(change timecache.ChangeEvent) *pb.ChangeEvent {
	return &pb.ChangeEvent{Kind: pb.ChangeKind(change.Kind), Key: []byte(change.Key), Value: change.Value,
		Parts: partsProto(change.Parts), Version: change.Version, Deadline: timeProto(change.Deadline),
		Time: timestamppb.New(change.Time), OmittedValueBytes: change.OmittedValueBytes}
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
