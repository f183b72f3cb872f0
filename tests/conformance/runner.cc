#include "tests/conformance/runner.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "timecache/batch.h"
#include "timecache/group_worker.h"
#include "timecache/pipeline.h"
#include "timecache/watcher.h"

namespace timecache::conformance {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

PutCondition Condition(const std::string& name) {
  if (name.empty()) return PutCondition::kAlways;
  Require(name == "IF_ABSENT" || name == "IF_PRESENT", "condition " + name);
  return name == "IF_ABSENT" ? PutCondition::kIfAbsent
                             : PutCondition::kIfPresent;
}

WatchStart Start(const std::string& name) {
  Require(name.empty() || name == "NOW" || name == "EARLIEST", "start " + name);
  return name == "EARLIEST" ? WatchStart::kEarliest : WatchStart::kNow;
}

template <typename Enum>
std::optional<Enum> Named(const Json& value,
                          const std::vector<std::string>& names) {
  if (value.is_null()) return std::nullopt;
  const auto it = std::find(names.begin(), names.end(), value);
  Require(it != names.end(), "no such name: " + value.dump());
  return static_cast<Enum>(it - names.begin());
}

PutOptions TakePutOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .condition = Condition(args.TakeString("condition")),
          .if_version = args.TakeInteger("if_version"),
          .return_previous = args.TakeBool("return_previous"),
          .keep_deadline = args.TakeBool("keep_deadline")};
}

RemoveOptions TakeRemoveOptions(Args& args) {
  return {.if_version = args.TakeInteger("if_version"),
          .return_previous = args.TakeBool("return_previous")};
}

TouchOptions TakeTouchOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .if_version = args.TakeInteger("if_version")};
}

AppendOptions TakeAppendOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .condition = Condition(args.TakeString("condition")),
          .if_version = args.TakeInteger("if_version"),
          .touch = args.TakeBool("touch")};
}

std::pair<Combination, int64_t> TakeOperand(Args& args) {
  const Combination combination =
      args.Has("xor") ? Combination::kXor : Combination::kAdd;
  return {combination,
          args.TakeInteger(args.Has("xor") ? "xor" : "add").value()};
}

CombineOptions TakeCombineOptions(Args& args) {
  return {.initial = args.TakeInteger("initial").value_or(0),
          .remove_if_zero = args.TakeBool("remove_if_zero"),
          .touch = args.TakeBool("touch"),
          .ttl = args.TakeDuration("ttl"),
          .if_version = args.TakeInteger("if_version")};
}

GatherOptions TakeGatherOptions(Args& args) {
  GatherOptions options = {.expected_parts = static_cast<uint32_t>(
                               args.TakeInteger("expected_parts").value_or(0)),
                           .touch = args.TakeBool("touch"),
                           .ttl = args.TakeDuration("ttl")};
  for (const Json& name : args.Take("expected_names")) {
    options.expected_names.push_back(Data(name));
  }
  return options;
}

Operation TakeOperation(const std::string& kind, Args& args) {
  const std::string key = args.TakeData("key");
  if (kind == "put") {
    return Operation::Put(key, args.TakeData("value"), TakePutOptions(args));
  }
  if (kind == "get") return Operation::Get(key, {args.TakeBool("touch")});
  if (kind == "remove") return Operation::Remove(key, TakeRemoveOptions(args));
  if (kind == "contains") return Operation::Contains(key);
  if (kind == "touch") return Operation::Touch(key, TakeTouchOptions(args));
  if (kind == "append") {
    return Operation::Append(key, args.TakeData("value"),
                             TakeAppendOptions(args));
  }
  if (kind == "combine") {
    const auto [combination, operand] = TakeOperand(args);
    return Operation::Combine(key, combination, operand,
                              TakeCombineOptions(args));
  }
  Require(kind == "gather", "no operation " + kind);
  const std::string part = args.TakeData("part");
  return Operation::Gather(key, part, args.TakeData("value"),
                           TakeGatherOptions(args));
}

NamespaceOptions TakeNamespaceOptions(Args args) {
  const NamespaceOptions options = {
      .ttl = args.TakeDuration("ttl"),
      .num_buckets = args.TakeInteger("num_buckets"),
      .max_ttl = args.TakeDuration("max_ttl"),
      .sliding = args.Has("sliding") ? std::optional(args.TakeBool("sliding"))
                                     : std::nullopt,
      .max_entries = args.TakeInteger("max_entries"),
      .max_bytes = args.TakeInteger("max_bytes"),
      .limit_policy = Named<LimitPolicy>(args.Take("limit_policy"),
                                         {"REJECT", "EVICT_OLDEST"}),
      .max_value_bytes = args.TakeInteger("max_value_bytes"),
      .event_retention = args.TakeDuration("event_retention"),
      .event_retention_bytes = args.TakeInteger("event_retention_bytes"),
      .num_shards = args.TakeInteger("num_shards"),
      .dead_letter_namespace =
          args.Has("dead_letter_namespace")
              ? std::optional(args.TakeString("dead_letter_namespace"))
              : std::nullopt,
      .max_operations_per_second =
          args.TakeInteger("max_operations_per_second"),
      .max_backlog_bytes = args.TakeInteger("max_backlog_bytes"),
      .unused_group_ttl = args.TakeDuration("unused_group_ttl"),
      .durability = Named<Durability>(args.Take("durability"),
                                      {"MEMORY", "ASYNC", "SYNC"}),
      .restart_policy =
          Named<RestartPolicy>(args.Take("restart_policy"), {"FIRE", "PAUSE"})};
  args.End();
  return options;
}

GroupOptions TakeGroupOptions(Args args) {
  const GroupOptions options = {
      .ack_timeout = args.TakeDuration("ack_timeout"),
      .max_attempts = args.TakeInteger("max_attempts"),
      .max_backlog_bytes = args.TakeInteger("max_backlog_bytes"),
      .unused_ttl = args.TakeDuration("unused_ttl")};
  args.End();
  return options;
}

// {"ack": {}}, {"nack": {"delay": ..}} or {"put_back": {"ttl": ..}}.
Settle TakeSettle(const Matcher& matcher, const std::string& kind,
                  const Json& values) {
  Args args(matcher, values);
  Settle how = Settle::Ack();
  if (kind == "nack") {
    how =
        Settle::Nack(args.TakeDuration("delay").value_or(absl::ZeroDuration()));
  } else if (kind == "put_back") {
    how = Settle::PutBack(args.TakeDuration("ttl"));
  } else {
    Require(kind == "ack", "no settlement " + kind);
  }
  args.End();
  return how;
}

template <typename T>
absl::StatusOr<Json> Answer(const absl::StatusOr<T>& result) {
  if (!result.ok()) return result.status();
  return ToJson(*result);
}

template <typename T>
absl::StatusOr<Json> AnswerAs(const char* name,
                              const absl::StatusOr<T>& result) {
  if (!result.ok()) return result.status();
  if constexpr (std::is_arithmetic_v<T>) {
    return Json{{name, *result}};
  } else {
    return Json{{name, ToJson(*result)}};
  }
}

absl::StatusOr<Json> Nothing(const absl::Status& status) {
  if (!status.ok()) return status;
  return Json::object();
}

}  // namespace

// --- arguments ---

Args::Args(const Matcher& matcher, Json values)
    : matcher_(matcher), values_(std::move(values)) {}

Json Args::Take(const std::string& name) {
  if (!Has(name)) return nullptr;
  Json value = matcher_.Resolve(values_[name]);
  values_.erase(name);
  return value;
}

std::string Args::TakeString(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? "" : value.get<std::string>();
}

std::string Args::TakeData(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? "" : Data(value);
}

bool Args::TakeBool(const std::string& name) {
  const Json value = Take(name);
  return !value.is_null() && value.get<bool>();
}

std::optional<int64_t> Args::TakeInteger(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? std::nullopt : std::optional(Integer(value));
}

std::optional<absl::Duration> Args::TakeDuration(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? std::nullopt : std::optional(Seconds(value));
}

void Args::End() const {
  Require(values_.empty(), "unknown arguments " + values_.dump());
}

// --- watches and workers ---

class Runner::Watch {
 public:
  Watch(const Client& client, WatchOptions options)
      : namespaces_(options.namespaces),
        is_member_(!options.group.empty()),
        is_expiring_(options.lead_time.has_value()),
        watcher_(client, std::move(options)) {}

  bool is_member() const { return is_member_; }

  // Until each namespace has told where it begins.
  absl::Status Stand() {
    return Read([this] { return watermarks_.size() == namespaces_.size(); });
  }
  absl::Status ReadTo(absl::Time now) {
    return Read([&] {
      return std::all_of(
          watermarks_.begin(), watermarks_.end(),
          [&](const auto& watermark) { return watermark.second >= now; });
    });
  }
  absl::Status ReadEvents(size_t count) {
    return Read([&] { return events_.size() >= count; });
  }

  // What has come since the last time.
  Json Take() {
    std::stable_sort(events_.begin(), events_.end(),
                     [this](const ExpiredEvent& a, const ExpiredEvent& b) {
                       return Place(a.ns) < Place(b.ns);
                     });
    Json tokens = Json::object();
    for (const auto& [ns, token] : tokens_) tokens[ns] = ToJson(token);
    Json taken = {{"events", ToJson(events_)},
                  {"lost", lost_},
                  {"resume_token", tokens[namespaces_[0]]},
                  {"resume_tokens", tokens}};
    events_.clear();
    lost_ = 0;
    return taken;
  }

 private:
  size_t Place(const std::string& ns) const {
    return std::find(namespaces_.begin(), namespaces_.end(), ns) -
           namespaces_.begin();
  }

  template <typename Enough>
  absl::Status Read(const Enough& is_enough) {
    while (!is_enough()) {
      absl::StatusOr<WatchBatch> batch = watcher_.Next(kPatience);
      if (!batch.ok()) return batch.status();
      watermarks_[batch->ns] = batch->watermark;
      tokens_[batch->ns] = batch->resume_token;
      lost_ += batch->lost;
      for (ExpiredEvent& event : batch->events) {
        const bool is_new =
            told_.emplace(event.ns, event.key, event.version, event.deadline)
                .second;
        if (is_new || !is_expiring_) events_.push_back(std::move(event));
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::string> namespaces_;
  const bool is_member_;
  const bool is_expiring_;
  Watcher watcher_;
  std::map<std::string, absl::Time> watermarks_;
  std::map<std::string, std::string> tokens_;
  std::vector<ExpiredEvent> events_;
  std::set<std::tuple<std::string, std::string, uint64_t, absl::Time>> told_;
  uint64_t lost_ = 0;
};

class Runner::Worker {
 public:
  Worker(const Client& client, GroupWorkerOptions options, Json script,
         const Matcher& matcher)
      : matcher_(matcher),
        script_(std::move(script)),
        worker_(client, std::move(options),
                [this](const ExpiredEvent& event) { return Handle(event); }) {}

  absl::Status Stop() { return worker_.Stop(); }

  // Waits for so many events; what has come since the last time.
  Json Take(size_t count) {
    const auto has_come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return handled_.size() >= count;
    };
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&has_come), kPatience);
    return ToJson(std::exchange(handled_, {}));
  }

 private:
  Settle Handle(const ExpiredEvent& event) {
    Json action = {{"ack", Json::object()}};
    {
      absl::MutexLock lock(&mu_);
      handled_.push_back(event);
      if (script_.contains(event.key)) {
        Json& actions = script_[event.key];
        action = actions[0];
        if (actions.size() > 1) actions.erase(0);
      }
    }
    const auto [kind, values] = *action.items().begin();
    if (kind == "throw") throw std::runtime_error(values);
    return TakeSettle(matcher_, kind, values);
  }

  const Matcher& matcher_;
  absl::Mutex mu_;
  Json script_ ABSL_GUARDED_BY(mu_);
  std::vector<ExpiredEvent> handled_ ABSL_GUARDED_BY(mu_);
  GroupWorker worker_;
};

// --- scenarios ---

Runner::Runner(const std::string& address)
    : client_(address), clock_(client_), now_(absl::UnixEpoch()) {}

Runner::~Runner() = default;

void Runner::Run(const Json& scenario) {
  for (const auto& [name, value] : scenario.items()) {
    Require(name == "name" || name == "about" || name == "namespaces" ||
                name == "steps",
            "unknown key " + name);
  }
  const absl::StatusOr<absl::Time> now = clock_.Now();
  Require(now.ok(), now.status().ToString());
  const absl::Duration age = *now - absl::UnixEpoch();
  now_ = absl::UnixEpoch() + absl::Ceil(age, absl::Hours(1));
  const absl::Status moved = clock_.AdvanceTo(now_).status();
  Require(moved.ok(), moved.ToString());
  matcher_.emplace(now_);

  const Json namespaces =
      scenario.value("namespaces", Json{{"main", Json::object()}});
  for (const auto& [name, options] : namespaces.items()) {
    client_.DeleteNamespace(name).IgnoreError();
    const auto made = client_.CreateNamespace(
        name, TakeNamespaceOptions(Args(*matcher_, options)));
    Require(made.ok(), made.status().ToString());
  }
  std::string failure;
  size_t number = 0;
  try {
    for (const Json& step : scenario["steps"]) {
      Step(step);
      ++number;
    }
  } catch (const std::exception& error) {
    failure = absl::StrCat("step ", number, ": ", error.what(), "\n    ",
                           scenario["steps"][number].dump());
  }
  watches_.clear();
  workers_.clear();
  for (const auto& [name, options] : namespaces.items()) {
    client_.DeleteNamespace(name).IgnoreError();
  }
  Require(failure.empty(), failure);
}

void Runner::Step(const Json& step) {
  static const std::map<std::string, std::set<std::string>> kinds = {
      {"call", {"args", "expect", "error", "save", "eventually"}},
      {"advance", {}},
      {"watch", {"args", "error"}},
      {"watch_expiring", {"args", "error"}},
      {"member", {"args"}},
      {"worker", {"args", "handler"}},
      {"events", {"expect", "lost", "save", "error"}},
      {"handled", {"expect"}},
      {"close", {}}};
  std::string kind;
  for (const auto& [name, known] : kinds) {
    if (!step.contains(name)) continue;
    Require(kind.empty(), "both " + kind + " and " + name);
    kind = name;
  }
  Require(!kind.empty(), "a step of no kind");
  for (const auto& [name, value] : step.items()) {
    Require(name == kind || kinds.at(kind).contains(name),
            "unknown key " + name);
  }
  if (kind == "call") {
    Call(step);
  } else if (kind == "advance") {
    const auto now = clock_.Advance(Seconds(step["advance"]));
    Require(now.ok(), now.status().ToString());
    now_ = *now;
  } else if (kind == "worker") {
    BeginWorker(step);
  } else if (kind == "events") {
    Events(step);
  } else if (kind == "handled") {
    Handled(step);
  } else if (kind == "close") {
    Close(step["close"]);
  } else {
    BeginWatch(kind, step);
  }
}

void Runner::MatchError(const absl::Status& error, const Json& step) const {
  Require(step.contains("error"), error.ToString());
  matcher_->Match(ToJson(error), step["error"], "error");
}

void Runner::Call(const Json& step) {
  const absl::Time give_up_at = absl::Now() + kPatience;
  while (true) {
    const absl::StatusOr<Json> answer = DoCall(step["call"], step);
    if (!answer.ok()) return MatchError(answer.status(), step);
    Require(!step.contains("error"), "succeeded");
    try {
      matcher_->Match(*answer, step.value("expect", Json::object()), "answer");
      return matcher_->Save(*answer, step);
    } catch (const Mismatch&) {
      if (!step.value("eventually", false) || absl::Now() > give_up_at) throw;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
}

absl::StatusOr<Json> Runner::DoCall(const std::string& name, const Json& step) {
  static const std::set<std::string> data = {
      "put",   "get",    "remove",  "contains", "size",
      "touch", "append", "combine", "gather",   "scan"};
  Args args(*matcher_, step.value("args", Json::object()));
  const std::string ns =
      args.Has("namespace") ? args.TakeString("namespace") : "main";
  const Client client = client_.In(ns);
  if (data.contains(name)) return DoData(name, client, args);
  if (name == "execute" || name == "pipeline") {
    return DoOperations(name, client, args);
  }
  if (name == "settle") return DoSettle(client, args);
  return DoAdmin(name, client, args);
}

absl::StatusOr<Json> Runner::DoData(const std::string& name,
                                    const Client& client, Args& args) {
  if (name == "size") {
    args.End();
    return Answer(client.Size());
  }
  if (name == "scan") {
    const ScanOptions options = {.key_prefix = args.TakeData("key_prefix"),
                                 .keys_only = args.TakeBool("keys_only")};
    args.End();
    std::vector<Entry> entries;
    const absl::Status status = client.Scan(options, [&](Entry entry) {
      entries.push_back(std::move(entry));
      return true;
    });
    if (!status.ok()) return status;
    return Json{{"entries", ToJson(entries)}};
  }
  const std::string key = args.TakeData("key");
  const std::string value = args.TakeData("value");
  if (name == "put") {
    const PutOptions options = TakePutOptions(args);
    args.End();
    return Answer(client.Put(key, value, options));
  }
  if (name == "get") {
    const GetOptions options = {args.TakeBool("touch")};
    args.End();
    return AnswerAs("entry", client.Get(key, options));
  }
  if (name == "remove") {
    const RemoveOptions options = TakeRemoveOptions(args);
    args.End();
    return Answer(client.Remove(key, options));
  }
  if (name == "contains") {
    args.End();
    return AnswerAs("contains", client.Contains(key));
  }
  if (name == "touch") {
    const TouchOptions options = TakeTouchOptions(args);
    args.End();
    const auto version = client.Touch(key, options);
    if (!version.ok()) return version.status();
    return TouchJson(version->has_value(), version->value_or(0));
  }
  if (name == "append") {
    const AppendOptions options = TakeAppendOptions(args);
    args.End();
    return Answer(client.Append(key, value, options));
  }
  if (name == "combine") {
    const auto [combination, operand] = TakeOperand(args);
    const CombineOptions options = TakeCombineOptions(args);
    args.End();
    return Answer(client.Combine(key, combination, operand, options));
  }
  const std::string part = args.TakeData("part");
  const GatherOptions options = TakeGatherOptions(args);
  args.End();
  return Answer(client.Gather(key, part, value, options));
}

absl::StatusOr<Json> Runner::DoOperations(const std::string& name,
                                          const Client& client, Args& args) {
  std::vector<std::string> kinds;
  std::vector<Operation> operations;
  for (const Json& item : args.Take("operations")) {
    const auto [kind, values] = *item.items().begin();
    Args own(*matcher_, values);
    kinds.push_back(kind);
    operations.push_back(TakeOperation(kind, own));
    own.End();
  }
  args.End();
  std::vector<OperationResult> results;
  if (name == "execute") {
    Batch batch;
    for (const Operation& operation : operations) batch.Add(operation);
    absl::StatusOr<std::vector<OperationResult>> all = client.Execute(batch);
    if (!all.ok()) return all.status();
    results = *std::move(all);
  } else {
    Pipeline pipeline(client);
    for (const Operation& operation : operations) {
      const absl::Status status = pipeline.Add(
          operation,
          [&](const OperationResult& result) { results.push_back(result); });
      if (!status.ok()) return status;
    }
    if (absl::Status status = pipeline.Close(); !status.ok()) return status;
  }
  Require(results.size() == kinds.size(), "as many results as operations");
  Json list = Json::array();
  for (size_t i = 0; i < kinds.size(); ++i) {
    list.push_back(ToJson(kinds[i], results[i]));
  }
  return Json{{"results", list}};
}

absl::StatusOr<Json> Runner::DoSettle(const Client& client, Args& args) {
  const std::string group = args.TakeString("group");
  std::vector<Settlement> settlements;
  for (const Json& item : args.Take("settlements")) {
    Args own(*matcher_, item);
    Settlement& settlement = settlements.emplace_back();
    settlement.event_id = own.TakeInteger("event_id").value();
    settlement.attempt = own.TakeInteger("attempt").value();
    for (const char* kind : {"ack", "nack", "put_back"}) {
      if (!own.Has(kind)) continue;
      settlement.how = TakeSettle(*matcher_, kind, own.Take(kind));
    }
    own.End();
  }
  args.End();
  const auto results = client.Settle(group, settlements);
  if (!results.ok()) return results.status();
  Json list = Json::array();
  for (const SettleResult& result : *results) {
    list.push_back(
        {{"version", result.version},
         {"error", result.status.ok() ? Json() : ToJson(result.status)}});
  }
  return Json{{"results", list}};
}

absl::StatusOr<Json> Runner::DoAdmin(const std::string& name,
                                     const Client& client, Args& args) {
  const std::string subject = args.TakeString("name");
  const Json options =
      args.Has("options") ? args.Take("options") : Json::object();
  std::vector<std::string> to_default;
  for (const Json& option : args.Take("to_default")) {
    to_default.push_back(option);
  }
  const DescribeOptions describe = {args.TakeBool("include_statistics")};
  const WatchStart start =
      args.TakeBool("from_earliest") ? WatchStart::kEarliest : WatchStart::kNow;
  args.End();
  const auto namespace_options = [&] {
    return TakeNamespaceOptions(Args(*matcher_, options));
  };
  const auto group_options = [&] {
    return TakeGroupOptions(Args(*matcher_, options));
  };
  if (name == "create_namespace") {
    return Answer(client.CreateNamespace(subject, namespace_options()));
  }
  if (name == "get_namespace") {
    return Answer(client.GetNamespace(subject, describe));
  }
  if (name == "list_namespaces") {
    return AnswerAs("namespaces", client.ListNamespaces(describe));
  }
  if (name == "update_namespace") {
    return Answer(
        client.UpdateNamespace(subject, namespace_options(), to_default));
  }
  if (name == "delete_namespace") {
    return Nothing(client.DeleteNamespace(subject));
  }
  if (name == "rotate_namespace") {
    return AnswerAs("entries", client.RotateNamespace(subject));
  }
  if (name == "create_group") {
    return Answer(client.CreateGroup(subject, group_options(), start));
  }
  if (name == "get_group") return Answer(client.GetGroup(subject, describe));
  if (name == "list_groups") {
    return AnswerAs("groups", client.ListGroups(describe));
  }
  if (name == "update_group") {
    return Answer(client.UpdateGroup(subject, group_options(), to_default));
  }
  if (name == "delete_group") return Nothing(client.DeleteGroup(subject));
  Require(name == "get_server", "no call " + name);
  return Answer(client.GetServer());
}

void Runner::BeginWatch(const std::string& kind, const Json& step) {
  Args args(*matcher_, step.value("args", Json::object()));
  WatchOptions options = {
      .namespaces =
          args.Has("namespaces")
              ? args.Take("namespaces").get<std::vector<std::string>>()
              : std::vector<std::string>{"main"},
      .start = Start(args.TakeString("start")),
      .key_prefix = args.TakeData("key_prefix"),
      .keys_only = args.TakeBool("keys_only"),
      .heartbeat_interval = args.TakeDuration("heartbeat_interval"),
      .fail_on_loss = args.TakeBool("fail_on_loss"),
      .lead_time = args.TakeDuration("lead_time"),
      .group = args.TakeString("group"),
      .max_in_flight = args.TakeInteger("max_in_flight")};
  const Json tokens = args.Take("resume_tokens");
  for (const auto& [ns, token] : tokens.items()) {
    options.resume_tokens[ns] = Data(matcher_->Resolve(token));
  }
  args.End();
  auto watch = std::make_unique<Watch>(client_, std::move(options));
  const absl::Status status = watch->Stand();
  if (!status.ok()) return MatchError(status, step);
  Require(!step.contains("error"), "the watch stands");
  watches_[step[kind]] = std::move(watch);
}

void Runner::Events(const Json& step) {
  Watch& watch = *watches_.at(step["events"]);
  const Json expected = step.value("expect", Json::array());
  const Json& list = expected.is_object() ? expected.at("unordered") : expected;
  const absl::Status status =
      watch.is_member() ? watch.ReadEvents(list.size()) : watch.ReadTo(now_);
  if (!status.ok()) return MatchError(status, step);
  Require(!step.contains("error"), "the watch goes on");
  const Json taken = watch.Take();
  matcher_->Match(taken["events"], expected, "events");
  matcher_->Match(taken["lost"], step.value("lost", Json(0)), "lost");
  matcher_->Save(taken, step);
}

void Runner::BeginWorker(const Json& step) {
  Args args(*matcher_, step.value("args", Json::object()));
  GroupWorkerOptions options = {
      .ns = args.Has("namespace") ? args.TakeString("namespace") : "main",
      .group = args.TakeString("group"),
      .start = Start(args.TakeString("start")),
      .keys_only = args.TakeBool("keys_only")};
  if (const auto threads = args.TakeInteger("concurrency")) {
    options.threads = static_cast<int>(*threads);
  }
  if (const auto most = args.TakeInteger("max_in_flight")) {
    options.max_in_flight = static_cast<uint32_t>(*most);
  }
  if (const auto delay = args.TakeDuration("retry_delay")) {
    options.retry_delay = *delay;
  }
  args.End();
  const Client client = client_.In(options.ns);
  const std::string group = options.group;
  workers_[step["worker"]] = std::make_unique<Worker>(
      client_, std::move(options), step.value("handler", Json::object()),
      *matcher_);
  const absl::Time give_up_at = absl::Now() + kPatience;
  while (true) {
    const auto made = client.GetGroup(group, {.include_statistics = true});
    if (made.ok() && made->statistics->members > 0) return;
    Require(absl::Now() < give_up_at, "the group has no member");
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void Runner::Handled(const Json& step) {
  const Json& expected = step["expect"];
  const Json& list = expected.is_object() ? expected.at("unordered") : expected;
  matcher_->Match(workers_.at(step["handled"])->Take(list.size()), expected,
                  "handled");
}

void Runner::Close(const std::string& name) {
  watches_.erase(name);
  const auto it = workers_.find(name);
  if (it == workers_.end()) return;
  const absl::Status status = it->second->Stop();
  Require(status.ok(), status.ToString());
  workers_.erase(it);
}

}  // namespace timecache::conformance
