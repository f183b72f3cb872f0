package timecache

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	pb "timecached.dev/client/go/gen/timecache/v1"
)

// DeadLetterReason is how the last attempt at an event ended before it became a dead letter.
type DeadLetterReason int

const (
	// DeadLetterUnknown is that of a letter of an older server, or one that this client is
	// too old to know.
	DeadLetterUnknown = DeadLetterReason(pb.DeadLetterReason_DEAD_LETTER_REASON_UNSPECIFIED)
	// DeadLetterNacked: by a Nack, or a handler's error.
	DeadLetterNacked = DeadLetterReason(pb.DeadLetterReason_DEAD_LETTER_REASON_NACKED)
	// DeadLetterTimedOut: it was not settled in time.
	DeadLetterTimedOut = DeadLetterReason(pb.DeadLetterReason_DEAD_LETTER_REASON_TIMED_OUT)
	// DeadLetterTerminated: its member gave it up.
	DeadLetterTerminated = DeadLetterReason(pb.DeadLetterReason_DEAD_LETTER_REASON_TERMINATED)
)

// String returns the reason's name, such as "NACKED".
func (r DeadLetterReason) String() string {
	return strings.TrimPrefix(pb.DeadLetterReason(r).String(), "DEAD_LETTER_REASON_")
}

// DeadLetter is an event that a consumer group has given up.
type DeadLetter struct {
	// Event is that event; its Namespace is where it died.
	Event ExpiredEvent
	// Group is the one that gave it up, after so many Attempts that counted.
	Group    string
	Attempts uint32
	// Reason is how the last of them ended; ReasonText what the member gave as its reason for
	// that Nack or Terminate.
	Reason     DeadLetterReason
	ReasonText string
	// Time is when the letter was made.
	Time time.Time
}

// DecodeDeadLetter takes an entry of a namespace's DeadLetterNamespace. Of a letter of an
// older server the Reason is DeadLetterUnknown, and the Time that of its put. An error: it is
// no dead letter.
func DecodeDeadLetter(entry *Entry) (DeadLetter, error) {
	// <namespace>/<group>/<event_id>, behind which #<partition> may stand.
	names := strings.Split(entry.Key, "/")
	message := &pb.ExpiredEvent{}
	if err := proto.Unmarshal(entry.Value, message); err != nil || len(names) != 3 || names[0] != message.Namespace {
		return DeadLetter{}, fmt.Errorf("key %q: not a dead letter", entry.Key)
	}
	number, _, _ := strings.Cut(names[2], "#")
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return DeadLetter{}, fmt.Errorf("key %q: not a dead letter: %w", entry.Key, err)
	}
	letter := DeadLetter{Event: toEvent(message), Group: names[1], Attempts: message.Attempt, Time: entry.PutTime}
	letter.Event.EventID = id
	if why := message.DeadLetter; why != nil {
		letter.Group, letter.Attempts, letter.Time = why.Group, why.Attempts, toTime(why.Time)
		letter.ReasonText = why.ReasonText
		if _, known := pb.DeadLetterReason_name[int32(why.Reason)]; known {
			letter.Reason = DeadLetterReason(why.Reason)
		}
	}
	return letter, nil
}
