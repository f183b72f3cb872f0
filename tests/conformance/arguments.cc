#include "tests/conformance/arguments.h"

#include <algorithm>

namespace timecache::conformance {
namespace {

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

}  // namespace

Args::Args(const Matcher& matcher, Json values)
    : matcher_(&matcher), values_(std::move(values)) {}

Json Args::Take(const std::string& name) {
  if (!Has(name)) return nullptr;
  Json value = matcher_->Resolve(values_[name]);
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

std::optional<bool> Args::TakeBoolIf(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<bool>());
}

std::optional<int64_t> Args::TakeInteger(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? std::nullopt : std::optional(Integer(value));
}

std::optional<absl::Duration> Args::TakeDuration(const std::string& name) {
  const Json value = Take(name);
  return value.is_null() ? std::nullopt : std::optional(Seconds(value));
}

std::optional<absl::Time> Args::TakeTime(const std::string& name) {
  const Json value = Take(name);
  if (value.is_null()) return std::nullopt;
  Require(value.is_object() && value.contains("at"),
          "no time: " + value.dump());
  return matcher_->start() + Seconds(value["at"]);
}

void Args::End() const {
  Require(values_.empty(), "unknown arguments " + values_.dump());
}

PutOptions TakePutOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .condition = Condition(args.TakeString("condition")),
          .if_version = args.TakeInteger("if_version"),
          .return_previous = args.TakeBool("return_previous"),
          .keep_deadline = args.TakeBool("keep_deadline"),
          .expire_at = args.TakeTime("expire_at"),
          .allow_past = args.TakeBool("allow_past"),
          .idempotency_id = args.TakeData("idempotency_id"),
          .traceparent = args.TakeString("traceparent")};
}

ContainsOptions TakeContainsOptions(Args& args) {
  return {.condition = Condition(args.TakeString("condition")),
          .if_version = args.TakeInteger("if_version")};
}

RemoveOptions TakeRemoveOptions(Args& args) {
  return {.if_version = args.TakeInteger("if_version"),
          .return_previous = args.TakeBool("return_previous"),
          .idempotency_id = args.TakeData("idempotency_id")};
}

TouchOptions TakeTouchOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .if_version = args.TakeInteger("if_version"),
          .expire_at = args.TakeTime("expire_at"),
          .allow_past = args.TakeBool("allow_past"),
          .namespace_ttl = args.TakeBool("namespace_ttl")};
}

AppendOptions TakeAppendOptions(Args& args) {
  return {.ttl = args.TakeDuration("ttl"),
          .condition = Condition(args.TakeString("condition")),
          .if_version = args.TakeInteger("if_version"),
          .touch = args.TakeBool("touch"),
          .idempotency_id = args.TakeData("idempotency_id"),
          .traceparent = args.TakeString("traceparent")};
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
          .if_version = args.TakeInteger("if_version"),
          .idempotency_id = args.TakeData("idempotency_id"),
          .traceparent = args.TakeString("traceparent")};
}

GatherOptions TakeGatherOptions(Args& args) {
  GatherOptions options = {.expected_parts = static_cast<uint32_t>(
                               args.TakeInteger("expected_parts").value_or(0)),
                           .touch = args.TakeBool("touch"),
                           .ttl = args.TakeDuration("ttl"),
                           .keep_first = args.TakeBool("keep_first"),
                           .remember = args.TakeDuration("remember"),
                           .idempotency_id = args.TakeData("idempotency_id"),
                           .traceparent = args.TakeString("traceparent")};
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
  if (kind == "get") return Operation::Get(key, {args.TakeBoolIf("touch")});
  if (kind == "remove") return Operation::Remove(key, TakeRemoveOptions(args));
  if (kind == "contains") {
    return Operation::Contains(key, TakeContainsOptions(args));
  }
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
          Named<RestartPolicy>(args.Take("restart_policy"), {"FIRE", "PAUSE"}),
      .max_life = args.TakeDuration("max_life"),
      .idempotency_window = args.TakeDuration("idempotency_window"),
      .idempotency_max_ids = args.TakeInteger("idempotency_max_ids"),
      .change_retention = args.TakeDuration("change_retention"),
      .change_retention_bytes = args.TakeInteger("change_retention_bytes"),
      .num_partitions = args.TakeInteger("num_partitions")};
  args.End();
  return options;
}

GroupPosition TakePosition(Args args) {
  GroupPosition position = args.TakeString("start") == "EARLIEST"
                               ? WatchStart::kEarliest
                               : WatchStart::kNow;
  position.time = args.TakeTime("time");
  if (args.Has("resume_token")) {
    position.resume_token = args.TakeData("resume_token");
  }
  args.End();
  return position;
}

GroupOptions TakeGroupOptions(Args args) {
  std::optional<std::vector<absl::Duration>> delays;
  for (const Json& delay : args.Take("retry_delays")) {
    if (!delays) delays.emplace();
    delays->push_back(Seconds(delay));
  }
  const GroupOptions options = {
      .ack_timeout = args.TakeDuration("ack_timeout"),
      .max_attempts = args.TakeInteger("max_attempts"),
      .max_backlog_bytes = args.TakeInteger("max_backlog_bytes"),
      .unused_ttl = args.TakeDuration("unused_ttl"),
      .retry_delay = args.TakeDuration("retry_delay"),
      .retry_multiplier = args.TakeInteger("retry_multiplier"),
      .max_retry_delay = args.TakeDuration("max_retry_delay"),
      .retry_jitter_percent = args.TakeInteger("retry_jitter_percent"),
      .paused = args.Has("paused") ? std::optional(args.TakeBool("paused"))
                                   : std::nullopt,
      .key_prefix = args.Has("key_prefix")
                        ? std::optional(args.TakeData("key_prefix"))
                        : std::nullopt,
      .single_active = args.Has("single_active")
                           ? std::optional(args.TakeBool("single_active"))
                           : std::nullopt,
      .retry_delays = delays};
  args.End();
  return options;
}

Settle TakeSettle(const std::string& kind, Args args) {
  Settle how = Settle::Ack();
  if (kind == "nack") {
    how = Settle::Nack(args.TakeDuration("delay"), args.TakeString("reason"));
  } else if (kind == "terminate") {
    how = Settle::Terminate(args.TakeString("reason"));
  } else if (kind == "put_back") {
    how = Settle::PutBack(args.TakeDuration("ttl"));
    how.expire_at = args.TakeTime("expire_at");
    how.allow_past = args.TakeBool("allow_past");
  } else {
    Require(kind == "ack" || kind == "extend", "no settlement " + kind);
    if (kind == "extend") how = Settle::Extend();
  }
  args.End();
  return how;
}

Settlement TakeSettlement(Args args) {
  Settlement settlement;
  settlement.delivery_token = args.TakeData("delivery_token");
  for (const char* kind : {"ack", "nack", "put_back", "extend", "terminate"}) {
    if (!args.Has(kind)) continue;
    settlement.how = TakeSettle(kind, args.Within(args.Take(kind)));
  }
  args.End();
  return settlement;
}

WatchOptions TakeWatchOptions(Args args) {
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
    options.resume_tokens[ns] = args.Within(tokens).TakeData(ns);
  }
  args.End();
  return options;
}

GroupWorkerOptions TakeWorkerOptions(Args args) {
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
  return options;
}

}  // namespace timecache::conformance
