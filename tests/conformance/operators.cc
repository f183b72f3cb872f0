#include "tests/conformance/operators.h"

#include <set>
#include <utility>

namespace timecache::conformance {
namespace {

Json ConnectionJson(const ClientConnection& from) {
  return {{"id", from.id},
          {"peer", from.peer},
          {"since", ToJson(from.since)},
          {"principal", from.principal},
          {"open_calls", from.open_calls},
          {"calls", from.calls},
          {"idle", ToJson(from.idle)},
          {"user_agent", from.user_agent}};
}

Json SlowCallJson(const SlowCall& from) {
  return {{"time", ToJson(from.time)},
          {"method", from.method},
          {"namespace", from.ns},
          {"duration", ToJson(from.duration)},
          {"code", from.code},
          {"operations", from.operations},
          {"principal", from.principal},
          {"peer", from.peer},
          {"request_id", from.request_id}};
}

}  // namespace

bool IsOperatorCall(const std::string& name) {
  static const std::set<std::string> all = {
      "who_am_i", "list_connections", "close_connection", "list_slow_calls"};
  return all.contains(name);
}

absl::StatusOr<Json> DoOperatorCall(const std::string& name,
                                    const Client& client, Args& args) {
  const auto id = static_cast<uint64_t>(args.TakeInteger("id").value_or(0));
  args.End();
  if (name == "close_connection") {
    const absl::Status status = client.CloseConnection(id);
    if (!status.ok()) return status;
    return Json::object();
  }
  Json list = Json::array();
  if (name == "who_am_i") {
    const auto caller = client.WhoAmI();
    if (!caller.ok()) return caller.status();
    for (const Permission& each : caller->permissions) {
      list.push_back({{"pattern", each.pattern}, {"verbs", each.verbs}});
    }
    return Json{{"principal", caller->principal},
                {"peer", caller->peer},
                {"access_rules", caller->access_rules},
                {"permissions", std::move(list)}};
  }
  if (name == "list_connections") {
    const auto connections = client.ListConnections();
    if (!connections.ok()) return connections.status();
    for (const auto& each : *connections) list.push_back(ConnectionJson(each));
    return Json{{"connections", std::move(list)}};
  }
  const auto slow = client.ListSlowCalls();
  if (!slow.ok()) return slow.status();
  for (const SlowCall& each : slow->calls) list.push_back(SlowCallJson(each));
  return Json{{"calls", std::move(list)},
              {"threshold", ToJson(slow->threshold)}};
}

}  // namespace timecache::conformance
