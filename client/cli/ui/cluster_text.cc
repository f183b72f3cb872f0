#include "client/cli/ui/cluster_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

using NodeRow = std::vector<std::string>;

const char* RoleName(NodeRole role) {
  switch (role) {
    case NodeRole::kStandby:
      return "standby";
    case NodeRole::kTakingOver:
      return "taking-over";
    case NodeRole::kOwner:
      return "owner";
    case NodeRole::kGone:
      return "gone";
    case NodeRole::kUnknown:
      break;
  }
  return "unknown";
}

std::string MillisText(absl::Duration time) {
  return DurationText(absl::Trunc(time, absl::Milliseconds(1)));
}

// Left-aligned columns, as wide as their widest cell.
std::string NodeTable(const std::vector<NodeRow>& table) {
  std::vector<size_t> widths(table.front().size());
  for (const NodeRow& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const NodeRow& row : table) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&line, "%-*s  ", static_cast<int>(widths[i]),
                            row[i]);
    }
    lines.push_back(line + row.back());
  }
  return absl::StrJoin(lines, "\n");
}

// "7 (1.5s), not caught up".
std::string LagText(const ClusterNode& node) {
  std::string text = absl::StrCat(node.lag_messages);
  if (node.lag_messages > 0 && node.lag_age) {
    absl::StrAppend(&text, " (", MillisText(*node.lag_age), ")");
  }
  if (!node.caught_up) absl::StrAppend(&text, ", not caught up");
  return text;
}

std::string SlotsText(const std::vector<ClusterSlot>& slots) {
  const auto count = [&slots](auto matches) {
    return std::count_if(slots.begin(), slots.end(), matches);
  };
  const auto owned =
      count([](const ClusterSlot& slot) { return !slot.owner.empty(); });
  const auto safe = count([](const ClusterSlot& slot) {
    return !slot.standby.empty() && slot.standby_ready;
  });
  const auto moving =
      count([](const ClusterSlot& slot) { return !slot.moves_to.empty(); });
  return absl::StrCat(owned, " of ", slots.size(), " slots have an owner, ",
                      safe, " a standby that has caught up, ", moving,
                      " are about to move");
}

// How many slots the node owns, and stands by for; empty where one node owns all.
NodeRow SlotCells(const ClusterNode& node,
                  const std::vector<ClusterSlot>& slots) {
  if (slots.empty()) return {};
  const auto count = [&](std::string ClusterSlot::*whose) {
    return absl::StrCat(std::count_if(
        slots.begin(), slots.end(),
        [&](const ClusterSlot& slot) { return slot.*whose == node.name; }));
  };
  return {count(&ClusterSlot::owner), count(&ClusterSlot::standby)};
}

std::vector<NodeRow> TableOf(const ClusterInfo& cluster) {
  NodeRow head = {"NODE", "ROLE", "ADDRESS", "VERSION", "HEARTBEAT"};
  if (!cluster.slots.empty()) head.insert(head.end(), {"OWNS", "STANDS BY"});
  head.push_back("LAG");
  std::vector<NodeRow> table = {head};
  for (const ClusterNode& node : cluster.nodes) {
    NodeRow row = {node.name, RoleName(node.role), node.address, node.version,
                   MillisText(node.since_heartbeat)};
    const NodeRow slots = SlotCells(node, cluster.slots);
    row.insert(row.end(), slots.begin(), slots.end());
    row.push_back(LagText(node));
    table.push_back(std::move(row));
  }
  return table;
}

std::string OwnerText(const ClusterInfo& cluster) {
  if (!cluster.slots.empty()) return SlotsText(cluster.slots);
  if (cluster.owner.empty()) return "no node owns";
  std::string text =
      absl::StrCat(cluster.owner, " owns, claim ", cluster.claim);
  if (cluster.owner_since) {
    absl::StrAppend(&text, ", since ", TimeText(*cluster.owner_since));
  }
  return text;
}

}  // namespace

std::string ClusterText(const std::string& address,
                        const ClusterInfo& cluster) {
  std::vector<std::string> lines = {absl::StrCat(
      "cluster ", cluster.name, " at ", address, ": ", OwnerText(cluster))};
  std::string answered = absl::StrCat(
      cluster.node, " answered; its clock is ",
      MillisText(absl::AbsDuration(cluster.clock_skew)),
      cluster.clock_skew < absl::ZeroDuration() ? " behind" : " ahead of",
      " the brokers'");
  if (cluster.lease_left) {
    absl::StrAppend(&answered,
                    *cluster.lease_left > absl::ZeroDuration()
                        ? "; lease " + MillisText(*cluster.lease_left)
                        : std::string("; its lease has ended"));
  }
  lines.push_back(std::move(answered));
  if (!cluster.waits_for.empty()) {
    lines.push_back(absl::StrCat("it waits for: ", cluster.waits_for));
  }
  if (cluster.slots.empty()) {
    lines.push_back(
        absl::StrCat("next owner: ", cluster.successor.empty()
                                         ? "none, no standby has caught up"
                                         : cluster.successor));
  }
  lines.push_back(
      absl::StrCat("brokers: ", absl::StrJoin(cluster.brokers, ", ")));
  lines.push_back(NodeTable(TableOf(cluster)));
  for (size_t i = 0; i < cluster.slots.size(); ++i) {
    if (cluster.slots[i].owner.empty()) {
      lines.push_back(absl::StrCat("slot ", i, " has no owner"));
    }
  }
  for (const TopicSetting& wrong : cluster.wrong_settings) {
    lines.push_back(absl::StrCat("wrong: ", wrong.topic, ": ", wrong.setting,
                                 " is ", wrong.value, ", must be ",
                                 wrong.wanted));
  }
  return absl::StrJoin(lines, "\n");
}

Json ClusterJson(const ClusterInfo& cluster) {
  const auto millis = [](absl::Duration time) {
    return absl::ToDoubleMilliseconds(time);
  };
  Json nodes = Json::array();
  for (const ClusterNode& node : cluster.nodes) {
    nodes.push_back(
        {{"name", node.name},
         {"address", node.address},
         {"version", node.version},
         {"role", RoleName(node.role)},
         {"since_heartbeat_ms", millis(node.since_heartbeat)},
         {"lag_messages", node.lag_messages},
         {"lag_age_ms", node.lag_age ? Json(millis(*node.lag_age)) : Json()},
         {"caught_up", node.caught_up}});
  }
  Json wrong = Json::array();
  for (const TopicSetting& setting : cluster.wrong_settings) {
    wrong.push_back({{"topic", setting.topic},
                     {"setting", setting.setting},
                     {"value", setting.value},
                     {"wanted", setting.wanted}});
  }
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  Json slots = Json::array();
  for (const ClusterSlot& slot : cluster.slots) {
    slots.push_back({{"owner", text_or_null(slot.owner)},
                     {"standby", text_or_null(slot.standby)},
                     {"standby_ready", slot.standby_ready},
                     {"moves_to", text_or_null(slot.moves_to)}});
  }
  return {
      {"name", cluster.name},
      {"node", cluster.node},
      {"owner", text_or_null(cluster.owner)},
      {"claim", cluster.claim},
      {"owner_since", cluster.owner_since
                          ? Json(ExactTimeText(*cluster.owner_since))
                          : Json()},
      {"lease_left_ms",
       cluster.lease_left ? Json(millis(*cluster.lease_left)) : Json()},
      {"clock_skew_ms", millis(cluster.clock_skew)},
      {"successor", text_or_null(cluster.successor)},
      {"waits_for", text_or_null(cluster.waits_for)},
      {"brokers", cluster.brokers},
      {"nodes", std::move(nodes)},
      {"slots", std::move(slots)},
      {"wrong_settings", std::move(wrong)},
  };
}

}  // namespace timecache::cli
