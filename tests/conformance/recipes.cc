#include "tests/conformance/recipes.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "client/examples/ten_lines.h"

namespace timecache::conformance {
namespace {

absl::StatusOr<Json> UnknownMethod(const std::string& name) {
  throw Mismatch("unknown " + name);
}

template <typename T>
absl::StatusOr<Json> OneField(const char* name,
                              const absl::StatusOr<T>& value) {
  if (!value.ok()) return value.status();
  return Json{{name, *value}};
}

absl::StatusOr<Json> RecipeDone(const absl::Status& status) {
  if (!status.ok()) return status;
  return Json::object();
}

uint64_t TakenId(const Json& value) {
  if (value.is_number()) return value;
  uint64_t id = 0;
  Require(value.is_string() && absl::SimpleAtoi(value.get<std::string>(), &id),
          "no id: " + value.dump());
  return id;
}

std::vector<uint64_t> TakeIds(Args& args, const std::string& name) {
  std::vector<uint64_t> ids;
  for (const Json& value : args.Take(name)) ids.push_back(TakenId(value));
  return ids;
}

absl::Time TakeMicros(Args& args, const std::string& name) {
  return absl::FromUnixMicros(Integer(args.Take(name)));
}

Json PageJson(const EventLog::Page& page) {
  Json events = Json::array();
  for (const EventLog::Event& event : page.events) {
    events.push_back({{"id", event.id},
                      {"time_us", absl::ToUnixMicros(event.time)},
                      {"data", ToJson(event.data)}});
  }
  return {{"events", events}, {"may_have_missed", page.may_have_missed}};
}

}  // namespace

Recipes::Recipes(const Client& client, TakeEvents take_events)
    : client_(client.In("main")), take_events_(std::move(take_events)) {}

void Recipes::Make(const std::string& kind, const std::string& name,
                   Args args) {
  const std::string in =
      args.TakeData(kind == "lock" || kind == "array" ? "key" : "name");
  const std::optional<absl::Duration> ttl = args.TakeDuration("ttl");
  if (kind == "lock") {
    made_[name] = std::make_unique<Lock>(
        client_, in,
        LockOptions{.ttl = ttl.value_or(LockOptions().ttl),
                    .owner = args.TakeString("owner")});
  } else if (kind == "table") {
    made_.insert_or_assign(name, Table(client_, in, {.ttl = ttl}));
  } else if (kind == "array") {
    const bool renew = !args.Has("renew") || args.TakeBool("renew");
    made_.insert_or_assign(name,
                           Array(client_, in, {.ttl = ttl, .renew = renew}));
  } else if (kind == "join") {
    JoinOptions options = {.ttl = ttl};
    for (const Json& source : args.Take("sources")) {
      options.sources.push_back(Data(source));
    }
    made_.insert_or_assign(name, Join(client_, in, std::move(options)));
  } else if (kind == "acker") {
    made_.insert_or_assign(name, Acker(client_, in, {.ttl = ttl}));
  } else if (kind == "event_log") {
    const EventLogOptions options = {
        .chunk = args.TakeDuration("chunk").value_or(absl::Seconds(10)),
        .chunks = static_cast<int>(args.TakeInteger("chunks").value_or(61))};
    made_.insert_or_assign(
        name, Log{.log = EventLog(client_, in, options), .position = {}});
  } else {
    Require(false, "unknown recipe " + kind);
  }
  args.End();
}

absl::StatusOr<Json> Recipes::Do(const std::string& what, Args args) {
  const size_t dot = what.find('.');
  auto answer = dot == std::string::npos
                    ? DoFunction(what, args)
                    : std::visit(
                          [&](auto& made) {
                            return DoOf(made, what.substr(dot + 1), args);
                          },
                          made_.at(what.substr(0, dot)));
  args.End();
  return answer;
}

absl::StatusOr<Json> Recipes::DoFunction(const std::string& name, Args& args) {
  if (name == "may_call") {
    const std::string caller = args.TakeData("caller");
    const int64_t limit = args.TakeInteger("limit").value();
    return OneField("allowed",
                    examples::MayCall(client_, caller, limit,
                                      args.TakeDuration("window").value()));
  }
  if (name == "join_id") {
    const Json fields = args.Take("fields");
    Require(fields.size() == 1 || fields.size() == 3, "fields");
    return Json{{"id", ToJson(fields.size() == 1
                                  ? Join::Id({Data(fields[0])})
                                  : Join::Id({Data(fields[0]), Data(fields[1]),
                                              Data(fields[2])}))}};
  }
  if (name != "answer_once") return UnknownMethod(name);
  const std::string request = args.TakeData("request");
  const absl::Duration work_time = args.TakeDuration("work_time").value();
  const absl::Duration remembered = args.TakeDuration("remembered").value();
  const std::string result = args.TakeData("answer");
  bool worked = false;
  const auto answer =
      examples::AnswerOnce(client_, request, work_time, remembered, [&] {
        worked = true;
        return result;
      });
  if (!answer.ok()) return answer.status();
  return Json{{"answer", ToJson(*answer)}, {"worked", worked}};
}

absl::StatusOr<Json> Recipes::DoOf(std::unique_ptr<Lock>& lock,
                                   const std::string& method, Args&) {
  if (method == "renew") return OneField("held", lock->Renew());
  if (method == "release") return OneField("held", lock->Release());
  if (method != "try_acquire") return UnknownMethod(method);
  const auto token = lock->TryAcquire();
  if (!token.ok()) return token.status();
  return Json{{"token", *token ? Json(**token) : Json()}};
}

absl::StatusOr<Json> Recipes::DoOf(Table& table, const std::string& method,
                                   Args& args) {
  const std::string member = args.TakeData("member");
  if (method == "add") return OneField("new", table.Add(member));
  if (method == "remove") return OneField("removed", table.Remove(member));
  if (method == "contains") return OneField("contains", table.Contains(member));
  Json members = Json::array();
  if (method == "left") {
    for (const ExpiredEvent& event : take_events_(args.TakeString("events"))) {
      const auto left = table.MemberOf(event.key);
      if (left) members.push_back(ToJson(*left));
    }
    return Json{{"members", members}};
  }
  if (method != "list") return UnknownMethod(method);
  const auto list = table.List();
  if (!list.ok()) return list.status();
  return Json{{"members", ToJson(*list)}};
}

absl::StatusOr<Json> Recipes::DoOf(Array& array, const std::string& method,
                                   Args& args) {
  if (method == "compact") return RecipeDone(array.Compact());
  if (method == "remove") {
    return RecipeDone(array.Remove(TakenId(args.Take("id"))));
  }
  if (method == "add") {
    const uint64_t id = TakenId(args.Take("id"));
    return RecipeDone(array.Add({.id = id, .value = args.TakeData("value")}));
  }
  if (method != "read") return UnknownMethod(method);
  const auto contents = array.Read();
  if (!contents.ok()) return contents.status();
  Json items = Json::array();
  for (const Array::Item& item : contents->items) {
    items.push_back({{"id", item.id}, {"value", ToJson(item.value)}});
  }
  return Json{{"items", items},
              {"version", contents->version},
              {"stored_bytes", contents->stored_bytes},
              {"compact_bytes", contents->compact_bytes}};
}

absl::StatusOr<Json> Recipes::DoOf(Join& join, const std::string& method,
                                   Args& args) {
  if (method == "incomplete") {
    Json rows = Json::array();
    for (const ExpiredEvent& event : take_events_(args.TakeString("events"))) {
      const auto row = join.Incomplete(event);
      if (!row) continue;
      rows.push_back(
          {{"id", ToJson(row->id)}, {"tuples", ToJson(row->tuples)}});
    }
    return Json{{"rows", rows}};
  }
  if (method != "add") return UnknownMethod(method);
  const std::string id = args.TakeData("id");
  const std::string source = args.TakeData("source");
  const auto row = join.Add(id, source, args.TakeData("tuple"));
  if (!row.ok()) return row.status();
  if (!*row) return Json{{"row", Json()}};
  return Json{
      {"row",
       {{"id", ToJson((*row)->id)}, {"tuples", ToJson((*row)->tuples)}}}};
}

absl::StatusOr<Json> Recipes::DoOf(Acker& acker, const std::string& method,
                                   Args& args) {
  if (method == "failed") {
    Json roots = Json::array();
    for (const ExpiredEvent& event : take_events_(args.TakeString("events"))) {
      const auto root = acker.FailedRoot(event);
      if (root) roots.push_back(ToJson(*root));
    }
    return Json{{"roots", roots}};
  }
  const std::string root = args.TakeData("root");
  const std::vector<uint64_t> emitted = TakeIds(args, "emitted");
  if (method == "track") return OneField("done", acker.Track(root, emitted));
  if (method == "fail") return OneField("existed", acker.Fail(root));
  if (method != "ack") return UnknownMethod(method);
  return OneField("done",
                  acker.Ack(root, TakenId(args.Take("tuple")), emitted));
}

absl::StatusOr<Json> Recipes::DoOf(Log& log, const std::string& method,
                                   Args& args) {
  if (method == "append") {
    const uint64_t id = TakenId(args.Take("id"));
    const absl::Time time = TakeMicros(args, "time_us");
    return RecipeDone(log.log.Append(
        {.time = time, .data = args.TakeData("data"), .id = id}));
  }
  if (method == "position_at") {
    log.position = log.log.PositionAt(TakeMicros(args, "time_us"));
    return Json{{"chunk", log.position.chunk}, {"offset", log.position.offset}};
  }
  if (method == "read") {
    const absl::Time from = TakeMicros(args, "from_us");
    const auto page = log.log.Read(from, TakeMicros(args, "to_us"));
    if (!page.ok()) return page.status();
    return PageJson(*page);
  }
  if (method != "read_new") return UnknownMethod(method);
  const auto page = log.log.ReadNew(&log.position, TakeMicros(args, "now_us"));
  if (!page.ok()) return page.status();
  Json answer = PageJson(*page);
  answer["position"] = {{"chunk", log.position.chunk},
                        {"offset", log.position.offset},
                        {"previous_offset", log.position.previous_offset}};
  return answer;
}

}  // namespace timecache::conformance
