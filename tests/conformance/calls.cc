#include "tests/conformance/calls.h"

#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/conformance/operators.h"
#include "timecache/batch.h"
#include "timecache/dead_letter.h"
#include "timecache/pipeline.h"

namespace timecache::conformance {
namespace {

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

absl::StatusOr<Json> DoData(const std::string& name, const Client& client,
                            Args& args) {
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
    const GetOptions options = {args.TakeBoolIf("touch")};
    args.End();
    return AnswerAs("entry", client.Get(key, options));
  }
  if (name == "remove") {
    const RemoveOptions options = TakeRemoveOptions(args);
    args.End();
    return Answer(client.Remove(key, options));
  }
  if (name == "contains") {
    const ContainsOptions options = TakeContainsOptions(args);
    args.End();
    return AnswerAs("contains", client.Contains(key, options));
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

absl::StatusOr<Json> DoOperations(const std::string& name, const Client& client,
                                  Args& args) {
  const bool atomic = name == "execute" && args.TakeBool("atomic");
  std::vector<std::string> kinds;
  std::vector<Operation> operations;
  for (const Json& item : args.Take("operations")) {
    const auto [kind, values] = *item.items().begin();
    Args own = args.Within(values);
    kinds.push_back(kind);
    operations.push_back(TakeOperation(kind, own));
    own.End();
  }
  args.End();
  std::vector<OperationResult> results;
  if (name == "execute") {
    Batch batch;
    batch.set_atomic(atomic);
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

absl::StatusOr<Json> DoSettle(const Client& client, Args& args) {
  const std::string group = args.TakeString("group");
  std::vector<Settlement> settlements;
  for (const Json& item : args.Take("settlements")) {
    settlements.push_back(TakeSettlement(args.Within(item)));
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

absl::StatusOr<Json> DoFetch(const Client& client, Args& args) {
  const std::string group = args.TakeString("group");
  const FetchOptions options = {.start = args.TakeString("start") == "EARLIEST"
                                             ? WatchStart::kEarliest
                                             : WatchStart::kNow,
                                .max_events = args.TakeInteger("max_events"),
                                .wait = args.TakeDuration("wait"),
                                .keys_only = args.TakeBool("keys_only")};
  args.End();
  const auto fetched = client.FetchExpired(group, options);
  if (!fetched.ok()) return fetched.status();
  return Json{{"events", ToJson(fetched->events)},
              {"watermark", ToJson(fetched->watermark)},
              {"delivered_watermark", ToJson(fetched->delivered_watermark)},
              {"lost", fetched->lost}};
}

absl::StatusOr<Json> DoSeek(const Client& client, Args& args) {
  const std::string group = args.TakeString("name");
  const GroupPosition position = TakePosition(args.Within(
      args.Has("position") ? args.Take("position") : Json::object()));
  const SeekOptions options = {args.TakeBool("drop_unsettled")};
  args.End();
  return Answer(client.SeekGroup(group, position, options));
}

absl::StatusOr<Json> DoListUnsettled(const Client& client, Args& args) {
  const std::string group = args.TakeString("name");
  const ListUnsettledOptions options = {args.TakeData("key_prefix"),
                                        args.TakeBool("include_values")};
  args.End();
  std::vector<UnsettledEvent> events;
  const absl::Status status =
      client.ListUnsettled(group, options, [&](UnsettledEvent event) {
        events.push_back(std::move(event));
        return true;
      });
  if (!status.ok()) return status;
  return Json{{"events", ToJson(events)}};
}

absl::StatusOr<Json> DoDeadLetters(const Client& client, Args& args) {
  const ScanOptions options = {.key_prefix = args.TakeData("key_prefix")};
  args.End();
  Json letters = Json::array();
  absl::Status decoded;
  const absl::Status status = client.Scan(options, [&](const Entry& entry) {
    const absl::StatusOr<DeadLetter> letter = DecodeDeadLetter(entry);
    if (letter.ok()) {
      letters.push_back(ToJson(*letter));
    } else {
      decoded = letter.status();
    }
    return letter.ok();
  });
  if (!status.ok()) return status;
  if (!decoded.ok()) return decoded;
  return Json{{"letters", letters}};
}

absl::StatusOr<Json> DoAdmin(const std::string& name, const Client& client,
                             Args& args) {
  const std::string subject = args.TakeString("name");
  const Json options =
      args.Has("options") ? args.Take("options") : Json::object();
  std::vector<std::string> to_default;
  for (const Json& option : args.Take("to_default")) {
    to_default.push_back(option);
  }
  const DescribeOptions describe = {args.TakeBool("include_statistics")};
  const std::string to = args.TakeString("to");
  const DeathsOptions deaths = {.max_bars = static_cast<uint32_t>(
                                    args.TakeInteger("max_bars").value_or(0)),
                                .within = args.TakeDuration("within")};
  const auto max_keys =
      static_cast<uint32_t>(args.TakeInteger("max_keys").value_or(0));
  const GroupPosition start = TakePosition(
      args.Within(args.Has("start") ? args.Take("start") : Json::object()));
  args.End();
  const auto namespace_options = [&] {
    return TakeNamespaceOptions(args.Within(options));
  };
  const auto group_options = [&] {
    return TakeGroupOptions(args.Within(options));
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
  if (name == "get_hot_keys") {
    return Answer(client.GetHotKeys(subject, max_keys));
  }
  if (name == "get_deaths") return Answer(client.GetDeaths(subject, deaths));
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
  if (name == "list_members") {
    return AnswerAs("members", client.ListMembers(subject));
  }
  if (name == "delete_group") return Nothing(client.DeleteGroup(subject));
  // The server is no node of a cluster.
  if (name == "get_cluster") return Nothing(client.GetCluster().status());
  if (name == "hand_over") return Nothing(client.HandOver(to).status());
  Require(name == "get_server", "no call " + name);
  return Answer(client.GetServer());
}

}  // namespace

absl::StatusOr<Json> DoCall(const std::string& name, const Client& to,
                            Args args) {
  static const std::set<std::string> data = {
      "put",   "get",    "remove",  "contains", "size",
      "touch", "append", "combine", "gather",   "scan"};
  const Client client =
      to.In(args.Has("namespace") ? args.TakeString("namespace") : "main");
  if (data.contains(name)) return DoData(name, client, args);
  if (name == "execute" || name == "pipeline") {
    return DoOperations(name, client, args);
  }
  if (name == "settle") return DoSettle(client, args);
  if (name == "fetch_expired") return DoFetch(client, args);
  if (name == "dead_letters") return DoDeadLetters(client, args);
  if (name == "seek_group") return DoSeek(client, args);
  if (name == "list_unsettled") return DoListUnsettled(client, args);
  if (IsOperatorCall(name)) return DoOperatorCall(name, client, args);
  return DoAdmin(name, client, args);
}

}  // namespace timecache::conformance
