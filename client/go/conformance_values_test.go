package timecache_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"timecached.dev/client/go"
)

// The values of the scenarios: into messages, and compared with messages.

func parseDuration(text string) (time.Duration, error) {
	seconds, has := strings.CutSuffix(text, "s")
	rational, is := new(big.Rat).SetString(seconds)
	if !has || !is {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	nanos := rational.Mul(rational, big.NewRat(1_000_000_000, 1))
	if !nanos.IsInt() || !nanos.Num().IsInt64() {
		return 0, fmt.Errorf("%q is no duration of this client's", text)
	}
	return time.Duration(nanos.Num().Int64()), nil
}

func toBytes(value any) ([]byte, error) {
	switch value := value.(type) {
	case string:
		return []byte(value), nil
	case []byte:
		return value, nil
	case object:
		if digits, is := value["hex"].(string); is && len(value) == 1 {
			return hex.DecodeString(digits)
		}
		text, is := value["repeat"].(string)
		times, counts := value["times"].(json.Number)
		if n, err := strconv.Atoi(times.String()); is && counts && err == nil && len(value) == 2 {
			return bytes.Repeat([]byte(text), n), nil
		}
	}
	return nil, fmt.Errorf("%v are no bytes", value)
}

// toInteger takes a number, or a string of digits.
func toInteger(value any) (*big.Int, error) {
	n, is := new(big.Int).SetString(fmt.Sprint(value), 10)
	if !is {
		return nil, fmt.Errorf("%v is no integer", value)
	}
	return n, nil
}

// toEnum takes a name without the prefix of its type.
func toEnum(enum protoreflect.EnumDescriptor, value any) (protoreflect.EnumNumber, error) {
	for i := range enum.Values().Len() {
		one := enum.Values().Get(i)
		if value == strings.TrimPrefix(string(one.Name()), prefix(enum)) {
			return one.Number(), nil
		}
	}
	return 0, fmt.Errorf("%v is no %s", value, enum.Name())
}

// prefix is that of an enum's values: PUT_CONDITION_ of PutCondition.
func prefix(enum protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(enum.Values().Get(0).Name()), "UNSPECIFIED")
}

// fill sets the fields of a message.
func fill(message proto.Message, arguments object) error {
	return fillMessage(message.ProtoReflect(), arguments)
}

func fillMessage(message protoreflect.Message, arguments object) error {
	for name, value := range arguments {
		field := message.Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return fmt.Errorf("%s has no %q", message.Descriptor().Name(), name)
		}
		if !field.IsList() {
			one, err := fieldValue(message.NewField(field), field, value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			message.Set(field, one)
			continue
		}
		values, is := value.([]any)
		if !is {
			return fmt.Errorf("%s: %v is no list", name, value)
		}
		list := message.Mutable(field).List()
		for _, value := range values {
			one, err := fieldValue(list.NewElement(), field, value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			list.Append(one)
		}
	}
	return nil
}

func fieldValue(fresh protoreflect.Value, field protoreflect.FieldDescriptor, value any) (protoreflect.Value, error) {
	none := protoreflect.Value{}
	switch field.Kind() {
	case protoreflect.BytesKind:
		b, err := toBytes(value)
		return protoreflect.ValueOfBytes(b), err
	case protoreflect.StringKind:
		text, is := value.(string)
		if !is {
			return none, fmt.Errorf("%v is no string", value)
		}
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BoolKind:
		flag, is := value.(bool)
		if !is {
			return none, fmt.Errorf("%v is no bool", value)
		}
		return protoreflect.ValueOfBool(flag), nil
	case protoreflect.EnumKind:
		number, err := toEnum(field.Enum(), value)
		return protoreflect.ValueOfEnum(number), err
	case protoreflect.MessageKind:
		if _, is := fresh.Message().Interface().(*durationpb.Duration); is {
			text, _ := value.(string)
			duration, err := parseDuration(text)
			return protoreflect.ValueOfMessage(durationpb.New(duration).ProtoReflect()), err
		}
		if at, is := value.(time.Time); is {
			return protoreflect.ValueOfMessage(timestamppb.New(at).ProtoReflect()), nil
		}
		fields, is := value.(object)
		if !is {
			return none, fmt.Errorf("%v is no object", value)
		}
		return fresh, fillMessage(fresh.Message(), fields)
	}
	n, err := toInteger(value)
	if err != nil {
		return none, err
	}
	switch field.Kind() {
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n.Uint64()), nil
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n.Uint64())), nil
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(n.Int64()), nil
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n.Int64())), nil
	}
	return none, fmt.Errorf("the runner does not know fields of type %v", field.Kind())
}

// match compares what came with what is expected. What came is a message, an object or a
// list of such, an error, or a plain value; nil is what is not set.
func (r *run) match(path string, expected, came any) error {
	differ := func() error { return fmt.Errorf("%s: expected %v, came %v", path, expected, came) }
	if message, is := came.(proto.Message); is {
		if !message.ProtoReflect().IsValid() {
			came = nil
		} else if expected, is := expected.(object); is {
			return r.matchMessage(path, expected, message)
		}
	}
	if expected, is := expected.(object); is {
		if _, is := expected["var"]; is {
			value, err := r.resolve(expected)
			if err != nil {
				return err
			}
			return r.match(path, value, came)
		}
		if expected["any"] == true {
			if isDefault(came) {
				return fmt.Errorf("%s: expected anything, came %v", path, came)
			}
			return nil
		}
		if bound, is := expected["gt"]; is {
			value, err := r.resolve(bound)
			if err != nil {
				return err
			}
			least, isNumber := new(big.Rat).SetString(fmt.Sprint(value))
			got, came := new(big.Rat).SetString(fmt.Sprint(came))
			if !isNumber || !came || got.Cmp(least) <= 0 {
				return differ()
			}
			return nil
		}
		if begin, is := expected["begins"]; is {
			first, err := toBytes(begin)
			size, failure := toInteger(expected["size"])
			got, _ := came.([]byte)
			if err != nil || failure != nil || !bytes.HasPrefix(got, first) || int64(len(got)) != size.Int64() {
				return differ()
			}
			return nil
		}
		if list, is := expected["unordered"].([]any); is {
			return r.matchUnordered(path, list, came)
		}
	}
	switch came := came.(type) {
	case nil:
		if expected != nil && !isDefault(expected) && fmt.Sprint(expected) != "0" {
			return differ()
		}
		return nil
	case error:
		return r.matchError(path, expected, came)
	case object:
		fields, is := expected.(object)
		if !is {
			return differ()
		}
		for name, value := range fields {
			if err := r.match(path+"."+name, value, came[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, is := expected.([]any)
		if !is || len(list) != len(came) {
			return differ()
		}
		for i, value := range list {
			if err := r.match(fmt.Sprintf("%s[%d]", path, i), value, came[i]); err != nil {
				return err
			}
		}
		return nil
	case []byte:
		want, err := toBytes(expected)
		if err != nil || !bytes.Equal(want, came) {
			return fmt.Errorf("%s: expected %v, came %x", path, expected, came)
		}
		return nil
	case time.Duration:
		text, _ := expected.(string)
		if want, err := parseDuration(text); err != nil || want != came {
			return differ()
		}
		return nil
	case time.Time:
		at, _ := expected.(object)
		text, _ := at["at"].(string)
		if want, err := parseDuration(text); err != nil || !r.start.Add(want).Equal(came) {
			return fmt.Errorf("%s: expected %v, came %v after the start", path, expected, came.Sub(r.start))
		}
		return nil
	case string, bool:
		if expected != came {
			return differ()
		}
		return nil
	}
	want, err := toInteger(expected)
	got, failure := toInteger(came)
	if err != nil || failure != nil || want.Cmp(got) != 0 {
		return differ()
	}
	return nil
}

// isDefault says whether a value is unset, or its type's default.
func isDefault(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []byte:
		return len(value) == 0
	case []any:
		return len(value) == 0
	case proto.Message, error, object:
		return false
	}
	return reflect.ValueOf(value).IsZero()
}

func (r *run) matchMessage(path string, expected object, message proto.Message) error {
	for _, special := range []string{"var", "gt", "any", "unordered"} {
		if _, is := expected[special]; is && len(expected) == 1 {
			if special == "any" {
				return nil
			}
			return fmt.Errorf("%s: %v is nothing for a message", path, expected)
		}
	}
	for name, value := range expected {
		field := message.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
		if field == nil {
			return fmt.Errorf("%s has no %q", path, name)
		}
		if err := r.match(path+"."+name, value, fieldOf(message.ProtoReflect(), field)); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf is a field as match takes it. What is unset is nil where that can be told.
func fieldOf(message protoreflect.Message, field protoreflect.FieldDescriptor) any {
	value := message.Get(field)
	if field.IsList() {
		list := make([]any, value.List().Len())
		for i := range list {
			list[i] = plain(field, value.List().Get(i))
		}
		return list
	}
	if !message.Has(field) && (field.HasPresence() || field.Kind() == protoreflect.MessageKind) {
		return nil
	}
	return plain(field, value)
}

func plain(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		switch message := value.Message().Interface().(type) {
		case *durationpb.Duration:
			return message.AsDuration()
		case *timestamppb.Timestamp:
			return message.AsTime()
		default:
			return message
		}
	case protoreflect.EnumKind:
		name := field.Enum().Values().ByNumber(value.Enum()).Name()
		return strings.TrimPrefix(string(name), prefix(field.Enum()))
	}
	return value.Interface()
}

func (r *run) matchUnordered(path string, expected []any, came any) error {
	list, is := came.([]any)
	if !is || len(list) != len(expected) {
		return fmt.Errorf("%s: expected in any order %v, came %v", path, expected, came)
	}
	// Each takes the first that fits and is not taken.
	taken := make([]bool, len(list))
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(expected) {
			return true
		}
		for j := range list {
			if taken[j] || r.match(path, expected[i], list[j]) != nil {
				continue
			}
			taken[j] = true
			if place(i + 1) {
				return true
			}
			taken[j] = false
		}
		return false
	}
	if !place(0) {
		return fmt.Errorf("%s: expected in any order %v, came %v", path, expected, came)
	}
	return nil
}

func (r *run) matchError(path string, expected any, came error) error {
	var failure *timecache.Error
	want, is := expected.(object)
	if !errors.As(came, &failure) || !is {
		return fmt.Errorf("%s: expected %v, came %v", path, expected, came)
	}
	if err := known(want, "code", "reason", "field", "metadata", "retry_delay"); err != nil {
		return err
	}
	var reason, field, delay any
	if failure.Reason != "" {
		reason = string(failure.Reason)
	}
	if len(failure.Violations) > 0 {
		field = failure.Violations[0].Field
	}
	if failure.RetryDelay != 0 {
		delay = failure.RetryDelay
	}
	metadata := object{}
	for name, value := range failure.Metadata {
		metadata[name] = value
	}
	if err := r.match(path, want, object{"code": code(came), "reason": reason, "field": field, "metadata": metadata,
		"retry_delay": delay}); err != nil {
		return fmt.Errorf("%w: %v", err, came)
	}
	return nil
}

// lookUp finds a part of an answer, by a path such as events[0].event_id.
func lookUp(answer any, path string) (any, error) {
	for _, name := range strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(path), ".") {
		switch node := answer.(type) {
		case object:
			answer = node[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(node) {
				return nil, fmt.Errorf("save %s: there is no %s", path, name)
			}
			answer = node[i]
		case proto.Message:
			field := node.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
			if field == nil {
				return nil, fmt.Errorf("save %s: there is no %s", path, name)
			}
			answer = fieldOf(node.ProtoReflect(), field)
		default:
			return nil, fmt.Errorf("save %s: there is no %s", path, name)
		}
	}
	if number := reflect.ValueOf(answer); number.IsValid() && (number.CanInt() || number.CanUint()) {
		answer = json.Number(fmt.Sprint(answer))
	}
	return answer, nil
}
