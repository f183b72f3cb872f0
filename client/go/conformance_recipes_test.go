package timecache_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"timecached.dev/client/go"
	"timecached.dev/client/go/recipes"
)

// The steps of the scenarios in tests/conformance/recipes.

// values are the arguments of a step; the first one that is wrong stays in err.
type values struct {
	given object
	asked []string
	err   error
}

func (v *values) ask(name string) (value any, has bool) {
	v.asked = append(v.asked, name)
	value, has = v.given[name]
	return value, has
}

// end says what was wrong, or given and never asked for.
func (v *values) end() error { return errors.Join(v.err, known(v.given, v.asked...)) }

func (v *values) text(name string) string {
	value, has := v.ask(name)
	if !has {
		return ""
	}
	b, err := toBytes(value)
	v.err = errors.Join(v.err, err)
	return string(b)
}

func (v *values) duration(name string) time.Duration {
	value, has := v.ask(name)
	if !has {
		return 0
	}
	text, _ := value.(string)
	duration, err := parseDuration(text)
	v.err = errors.Join(v.err, err)
	return duration
}

func (v *values) signed(name string) int64 {
	value, _ := v.ask(name)
	n, err := toInteger(value)
	if err != nil {
		v.err = errors.Join(v.err, err)
		return 0
	}
	return n.Int64()
}

// id is an unsigned number of 64 bits.
func (v *values) id(name string) uint64 {
	value, _ := v.ask(name)
	id, err := strconv.ParseUint(fmt.Sprint(value), 10, 64)
	v.err = errors.Join(v.err, err)
	return id
}

func (v *values) texts(name string) (texts []string) {
	value, _ := v.ask(name)
	list, _ := value.([]any)
	for _, one := range list {
		b, err := toBytes(one)
		v.err = errors.Join(v.err, err)
		texts = append(texts, string(b))
	}
	return texts
}

func (v *values) ids(name string) (ids []uint64) {
	value, _ := v.ask(name)
	list, _ := value.([]any)
	for _, one := range list {
		id, err := strconv.ParseUint(fmt.Sprint(one), 10, 64)
		v.err = errors.Join(v.err, err)
		ids = append(ids, id)
	}
	return ids
}

func (v *values) time(name string) time.Time { return time.UnixMicro(v.signed(name)) }

func (r *run) recipe(kind string, step object) error {
	args, err := r.arguments(step)
	if err = errors.Join(err, known(step, "recipe", "as", "args")); err != nil {
		return err
	}
	v := &values{given: args}
	client := r.client.In("main")
	var made any
	switch kind {
	case "lock":
		made = recipes.NewLock(client, v.text("key"), recipes.LockOptions{TTL: v.duration("ttl"), Owner: v.text("owner")})
	case "array":
		renew, has := v.ask("renew")
		made = recipes.NewArray(client, v.text("key"), recipes.ArrayOptions{TTL: v.duration("ttl"), KeepDeadline: has && renew == false})
	case "join":
		made = recipes.NewJoin(client, v.text("name"), recipes.JoinOptions{Sources: v.texts("sources"), TTL: v.duration("ttl")})
	case "acker":
		made = recipes.NewAcker(client, v.text("name"), recipes.AckerOptions{TTL: v.duration("ttl")})
	case "event_log":
		made = &logReader{EventLog: recipes.NewEventLog(client, v.text("name"),
			recipes.EventLogOptions{Chunk: v.duration("chunk"), Chunks: int(v.signed("chunks"))})}
	case "table":
		made = recipes.NewTable(client, v.text("name"), recipes.TableOptions{TTL: v.duration("ttl")})
	default:
		return fmt.Errorf("the runner does not know the recipe %q", kind)
	}
	r.made[step["as"].(string)] = made
	return v.end()
}

func (r *run) doRecipe(what string, step object) error {
	args, err := r.arguments(step)
	if err = errors.Join(err, known(step, "do", "args", "expect", "error", "save")); err != nil {
		return err
	}
	name, method, is := strings.Cut(what, ".")
	if !is {
		method = what
	}
	v := &values{given: args}
	do := map[string]func(context.Context, *values) (object, error){
		"may_call": r.mayCall, "answer_once": r.answerOnce, "join_id": joinID,
	}[method]
	switch made := r.made[name].(type) {
	case *recipes.Lock:
		do = lockSteps(made)[method]
	case *recipes.Array:
		do = arraySteps(made)[method]
	case *recipes.Join:
		do = r.joinSteps(made)[method]
	case *recipes.Acker:
		do = r.ackerSteps(made)[method]
	case *logReader:
		do = made.steps()[method]
	case *recipes.Table:
		do = r.tableSteps(made)[method]
	}
	if do == nil {
		return fmt.Errorf("the runner does not know %q", what)
	}
	answer, failure := do(r.ctx, v)
	if err := v.end(); err != nil {
		return err
	}
	return r.outcome(step, answer, failure)
}

type recipeSteps = map[string]func(context.Context, *values) (object, error)

// of is an answer of one field.
func of[T any](name string, value T, err error) (object, error) { return object{name: value}, err }

func (r *run) mayCall(ctx context.Context, v *values) (object, error) {
	allowed, err := recipes.MayCall(ctx, r.client.In("main"), v.text("caller"), v.signed("limit"), v.duration("window"))
	return of("allowed", allowed, err)
}

func (r *run) answerOnce(ctx context.Context, v *values) (object, error) {
	worked, result := false, []byte(v.text("answer"))
	options := recipes.AnswerOptions{WorkTime: v.duration("work_time"), Remembered: v.duration("remembered")}
	answer, err := recipes.AnswerOnce(ctx, r.client.In("main"), v.text("request"), options,
		func(context.Context) ([]byte, error) {
			worked = true
			return result, nil
		})
	return object{"answer": answer, "worked": worked}, err
}

func lockSteps(lock *recipes.Lock) recipeSteps {
	return recipeSteps{
		"try_acquire": func(ctx context.Context, _ *values) (object, error) {
			token, err := lock.TryAcquire(ctx)
			if token == 0 {
				return object{"token": nil}, err
			}
			return of("token", token, err)
		},
		"renew": func(ctx context.Context, _ *values) (object, error) {
			held, err := lock.Renew(ctx)
			return of("held", held, err)
		},
		"release": func(ctx context.Context, _ *values) (object, error) {
			held, err := lock.Release(ctx)
			return of("held", held, err)
		},
	}
}

func (r *run) tableSteps(table *recipes.Table) recipeSteps {
	return recipeSteps{
		"add": func(ctx context.Context, v *values) (object, error) {
			isNew, err := table.Add(ctx, v.text("member"))
			return of("new", isNew, err)
		},
		"remove": func(ctx context.Context, v *values) (object, error) {
			removed, err := table.Remove(ctx, v.text("member"))
			return of("removed", removed, err)
		},
		"contains": func(ctx context.Context, v *values) (object, error) {
			contains, err := table.Contains(ctx, v.text("member"))
			return of("contains", contains, err)
		},
		"list": func(ctx context.Context, _ *values) (object, error) {
			list, err := table.List(ctx)
			members := []any{}
			for _, member := range list {
				members = append(members, []byte(member))
			}
			return of("members", members, err)
		},
		"left": func(_ context.Context, v *values) (object, error) {
			return r.ofEvents(v, "members", func(event *timecache.ExpiredEvent) any {
				if member, is := table.MemberOf(event.Key); is {
					return []byte(member)
				}
				return nil
			})
		},
	}
}

// ofEvents is what a recipe makes of the events of a watch.
func (r *run) ofEvents(v *values, name string, recipe func(*timecache.ExpiredEvent) any) (object, error) {
	e, failure, err := r.readEvents(v.text("events"), 0, time.Time{}, false)
	if err = errors.Join(failure, err); err != nil {
		return nil, err
	}
	found := []any{}
	for _, event := range e.unread {
		if one := recipe(&event); one != nil {
			found = append(found, one)
		}
	}
	e.unread = nil
	return object{name: found}, nil
}

func arraySteps(array *recipes.Array) recipeSteps {
	return recipeSteps{
		"add": func(ctx context.Context, v *values) (object, error) {
			return nil, array.AddItem(ctx, recipes.Item{ID: v.id("id"), Value: []byte(v.text("value"))})
		},
		"remove": func(ctx context.Context, v *values) (object, error) {
			return nil, array.Remove(ctx, v.id("id"))
		},
		"compact": func(ctx context.Context, _ *values) (object, error) {
			return nil, array.Compact(ctx)
		},
		"read": func(ctx context.Context, _ *values) (object, error) {
			contents, err := array.Read(ctx)
			items := []any{}
			for _, item := range contents.Items {
				items = append(items, object{"id": item.ID, "value": item.Value})
			}
			return object{"items": items, "version": contents.Version, "stored_bytes": contents.StoredBytes,
				"compact_bytes": contents.CompactBytes}, err
		},
	}
}

func joinID(_ context.Context, v *values) (object, error) {
	return object{"id": []byte(recipes.JoinID(v.texts("fields")...))}, nil
}

// list is what match takes; a tuple that is nil has not come.
func list(tuples [][]byte) []any {
	all := []any{}
	for _, tuple := range tuples {
		if tuple == nil {
			all = append(all, nil)
		} else {
			all = append(all, tuple)
		}
	}
	return all
}

func (r *run) joinSteps(join *recipes.Join) recipeSteps {
	return recipeSteps{
		"add": func(ctx context.Context, v *values) (object, error) {
			row, err := join.Add(ctx, v.text("id"), v.text("source"), []byte(v.text("tuple")))
			if row == nil {
				return object{"row": nil}, err
			}
			return object{"row": object{"id": []byte(row.ID), "tuples": list(row.Tuples)}}, err
		},
		"incomplete": func(_ context.Context, v *values) (object, error) {
			return r.ofEvents(v, "rows", func(event *timecache.ExpiredEvent) any {
				if row := join.Incomplete(event); row != nil {
					return object{"id": []byte(row.ID), "tuples": list(row.Tuples)}
				}
				return nil
			})
		},
	}
}

func (r *run) ackerSteps(acker *recipes.Acker) recipeSteps {
	return recipeSteps{
		"track": func(ctx context.Context, v *values) (object, error) {
			done, err := acker.Track(ctx, v.text("root"), v.ids("emitted")...)
			return of("done", done, err)
		},
		"ack": func(ctx context.Context, v *values) (object, error) {
			done, err := acker.Ack(ctx, v.text("root"), v.id("tuple"), v.ids("emitted")...)
			return of("done", done, err)
		},
		"fail": func(ctx context.Context, v *values) (object, error) {
			existed, err := acker.Fail(ctx, v.text("root"))
			return of("existed", existed, err)
		},
		"failed": func(_ context.Context, v *values) (object, error) {
			return r.ofEvents(v, "roots", func(event *timecache.ExpiredEvent) any {
				if root, failed := acker.FailedRoot(event); failed {
					return []byte(root)
				}
				return nil
			})
		},
	}
}

// logReader is an EventLog and where it is read.
type logReader struct {
	*recipes.EventLog
	position recipes.Position
}

func pageOf(page recipes.Page) object {
	events := []any{}
	for _, event := range page.Events {
		events = append(events, object{"id": event.ID, "time_us": event.Time.UnixMicro(), "data": event.Data})
	}
	return object{"events": events, "may_have_missed": page.MayHaveMissed}
}

func (l *logReader) steps() recipeSteps {
	return recipeSteps{
		"append": func(ctx context.Context, v *values) (object, error) {
			return nil, l.AppendEvent(ctx, recipes.LogEvent{Time: v.time("time_us"), Data: []byte(v.text("data")), ID: v.id("id")})
		},
		"read": func(ctx context.Context, v *values) (object, error) {
			page, err := l.Read(ctx, v.time("from_us"), v.time("to_us"))
			return pageOf(page), err
		},
		"position_at": func(_ context.Context, v *values) (object, error) {
			l.position = l.PositionAt(v.time("time_us"))
			return object{"chunk": l.position.Chunk, "offset": l.position.Offset}, nil
		},
		"read_new": func(ctx context.Context, v *values) (answer object, err error) {
			var page recipes.Page
			page, l.position, err = l.ReadNew(ctx, l.position, v.time("now_us"))
			answer = pageOf(page)
			answer["position"] = object{"chunk": l.position.Chunk, "offset": l.position.Offset,
				"previous_offset": l.position.PreviousOffset}
			return answer, err
		},
	}
}
