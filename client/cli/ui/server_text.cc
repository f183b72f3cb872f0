#include "client/cli/ui/server_text.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

// A limit of the server: its name for the eye, and in the message.
struct Limit {
  const char* name;
  const char* field;
  std::optional<LimitUse> ServerInfo::*use;
  std::string (*text)(uint64_t);

  std::string Text(const ServerInfo& server) const {
    const LimitUse& shown = *(server.*use);
    const std::string used = absl::StrCat(name, " ", text(shown.used));
    if (shown.max == 0) return used;
    return absl::StrCat(used, " of ", text(shown.max));
  }
};

// The limits that the server shows to this caller.
std::vector<Limit> LimitsOf(const ServerInfo& server) {
  using S = ServerInfo;
  std::vector<Limit> limits = {
      {"namespaces", "namespaces", &S::namespaces, CountText},
      {"entries", "entries", &S::entries, CountText},
      {"bytes", "bytes", &S::bytes, SizeText},
      {"watchers", "watchers", &S::watchers, CountText},
      {"memory", "memory_bytes", &S::memory_bytes, SizeText},
      {"connections", "connections", &S::connections, CountText}};
  std::erase_if(limits,
                [&server](const Limit& limit) { return !(server.*limit.use); });
  return limits;
}

// Without microseconds, which do not matter for an age.
std::string AgeText(absl::Duration age) {
  const absl::Duration unit =
      age < absl::Seconds(1) ? absl::Milliseconds(1) : absl::Seconds(1);
  return DurationText(absl::Trunc(age, unit));
}

// The parts in as few lines as they fit into.
std::string Wrap(const std::vector<std::string>& parts, size_t columns) {
  constexpr char kBetween[] = "   ";
  std::string text;
  size_t line = 0;
  for (const std::string& part : parts) {
    const bool fits = line + sizeof(kBetween) - 1 + part.size() <= columns;
    if (!text.empty()) text += fits ? kBetween : "\n";
    line = text.empty() || !fits ? part.size()
                                 : line + sizeof(kBetween) - 1 + part.size();
    text += part;
  }
  return text;
}

const char* CheckpointText(CheckpointState state) {
  switch (state) {
    case CheckpointState::kWriting:
      return ", one writes entries again";
    case CheckpointState::kWaiting:
      return ", one waits for retained events";
    case CheckpointState::kIdle:
    case CheckpointState::kUnknown:
      break;
  }
  return "";
}

// Of a server that reports one.
std::vector<std::string> JournalTexts(const ServerSample& sample,
                                      const ServerSample* before) {
  const JournalStatus& j = *sample.server.journal;
  const JournalRates rates = JournalRatesOf(before, sample);
  std::vector<std::string> texts = {absl::StrCat("journal ", j.directory),
                                    SizeText(j.disk_bytes)};
  if (j.disk_full) texts.push_back("DISK FULL: changes are refused");
  texts.push_back(absl::StrCat("waiting ", SizeText(j.waiting_bytes.used),
                               " of ", SizeText(j.waiting_bytes.max)));
  texts.push_back(rates.commits_per_second
                      ? absl::StrCat("commits ",
                                     RateText(*rates.commits_per_second),
                                     "/s, ",
                                     SizeText(static_cast<uint64_t>(
                                         rates.bytes_per_second.value_or(0))),
                                     "/s")
                      : absl::StrCat("commits ", CountText(j.commits)));
  if (rates.group_appends > 0) {
    texts.push_back(absl::StrCat(
        "each ", DurationText(absl::Trunc(rates.commit, absl::Microseconds(1))),
        ", 99 % below ", DurationText(j.commit_p99)));
    texts.push_back(
        absl::StrCat("groups of ", RateText(rates.group_appends), " appends, ",
                     SizeText(static_cast<uint64_t>(rates.group_bytes))));
  }
  texts.push_back(absl::StrCat("checkpoints ", CountText(j.checkpoints),
                               CheckpointText(j.checkpoint_state)));
  return texts;
}

// Of a clock that is a second off, at least.
std::string ClockText(const ServerInfo& s) {
  const absl::Duration offset = s.clock_offset.value_or(absl::ZeroDuration());
  if (absl::AbsDuration(offset) < absl::Seconds(1)) return "";
  return absl::StrCat(", its clock ", AgeText(absl::AbsDuration(offset)),
                      offset > absl::ZeroDuration() ? " behind" : " ahead of",
                      " the machine's");
}

std::string HeaderText(const std::string& address, const ServerSample& sample,
                       const ServerSample* before, size_t columns) {
  const ServerInfo& s = sample.server;
  std::vector<std::string> uses;
  for (const Limit& limit : LimitsOf(s)) uses.push_back(limit.Text(s));
  if (uses.empty()) {
    uses = {"limits: only shown to callers that may read all namespaces"};
  }
  const bool shows_limits = !LimitsOf(s).empty();
  std::string text =
      absl::StrCat("timecached ", s.version, " at ", address, ": ",
                   s.draining ? "draining" : "serving", ", up ",
                   AgeText(s.now - s.start_time),
                   shows_limits && !s.journal ? ", memory only" : "",
                   ClockText(s), "\n", Wrap(uses, columns));
  if (s.journal) {
    absl::StrAppend(&text, "\n", Wrap(JournalTexts(sample, before), columns));
  }
  return text;
}

Row NamespaceRow(const Namespace& ns, const Rates* rates) {
  const auto s = ns.statistics.value_or(NamespaceStatistics());
  Row row = {ns.name};
  if (rates != nullptr) {
    for (const double rate :
         {rates->puts, rates->hits, rates->misses, rates->deaths}) {
      row.push_back(RateText(rate));
    }
  }
  row.insert(
      row.end(),
      {CountText(s.entries), SizeText(s.bytes),
       absl::StrCat(DurationText(s.lateness_p99), "/",
                    DurationText(ns.bucket_width)),
       CountText(s.bound_violations), CountText(s.watchers),
       CountText(s.live_buckets), CountText(s.expired + s.evicted + s.rotated),
       DurationText(ns.options.ttl.value_or(absl::ZeroDuration())),
       NameOf(ns.options.durability.value_or(Durability::kMemory))});
  return row;
}

std::vector<Row> NamespaceRows(const ServerSample& sample,
                               const ServerSample* before) {
  std::vector<std::pair<const Namespace*, Rates>> order;
  for (const Namespace& ns : sample.namespaces) {
    order.emplace_back(
        &ns, before == nullptr ? Rates() : RatesOf(*before, sample, ns));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) {
                     return a.second.operations() > b.second.operations();
                   });
  // The most useful ones first: a narrow screen leaves out the last ones.
  Row names = {"NAMESPACE"};
  if (before != nullptr) {
    names.insert(names.end(), {"PUT/S", "HIT/S", "MISS/S", "DIED/S"});
  }
  names.insert(names.end(),
               {"ENTRIES", "BYTES", "LATE/BOUND", "VIOLATIONS", "WATCHERS",
                "BUCKETS", "DIED", "TTL", "DURABILITY"});
  std::vector<Row> table = {std::move(names)};
  for (const auto& [ns, rates] : order) {
    table.push_back(NamespaceRow(*ns, before == nullptr ? nullptr : &rates));
  }
  return table;
}

std::vector<Row> GroupRows(const ServerSample& sample) {
  std::vector<Row> table = {{"GROUP", "MEMBERS", "WAITING", "IN FLIGHT", "LAG",
                             "DEAD LETTERS", "LOST"}};
  for (const Group& group : sample.groups) {
    const auto s = group.statistics.value_or(GroupStatistics());
    table.push_back({absl::StrCat(group.ns, "/", group.name),
                     CountText(s.members), CountText(s.backlog),
                     CountText(s.in_flight), AgeText(LagOf(sample, group)),
                     CountText(s.dead_lettered), CountText(s.lost)});
  }
  return table;
}

std::vector<Row> HotRows(const ServerSample& sample) {
  std::vector<Row> table = {{absl::StrCat("KEY OF ", sample.hot_namespace),
                             "READ/S", "WRITE/S", "VALUE"}};
  for (const HotKey& key : sample.hot.keys) {
    table.push_back({Escape(key.key), RateText(key.reads_per_second),
                     RateText(key.writes_per_second),
                     SizeText(key.value_bytes)});
  }
  return table;
}

// Of a server that reports one.
Json JournalJson(const ServerSample& sample, const ServerSample* before) {
  const JournalStatus& j = *sample.server.journal;
  const JournalRates rates = JournalRatesOf(before, sample);
  Json object = ToJson(j);
  object["commit_ms"] = absl::ToDoubleMilliseconds(rates.commit);
  object["group_appends"] = rates.group_appends;
  object["group_bytes"] = rates.group_bytes;
  if (rates.commits_per_second) {
    object["rates"] = {{"commits", *rates.commits_per_second},
                       {"written_bytes", rates.bytes_per_second.value_or(0)}};
  }
  return object;
}

}  // namespace

std::string ServerText(const std::string& address, const ServerSample& sample,
                       const ServerSample* before, int rows, int columns) {
  const auto width = static_cast<size_t>(std::max(columns, 1));
  std::string text = HeaderText(address, sample, before, width);
  // The lines above, and an empty one before each table.
  int left = rows - 2 - static_cast<int>(std::ranges::count(text, '\n'));
  // Names with rates, and of groups with what waits.
  constexpr size_t kKept = 5;
  std::vector<Row> namespaces = NamespaceRows(sample, before);
  // Last, and only where there is room for all of them.
  std::string hot;
  const int for_hot = static_cast<int>(sample.hot.keys.size()) + 2;
  if (!sample.hot.keys.empty() && left / 2 > for_hot) {
    hot = absl::StrCat("\n\n", Table(HotRows(sample), for_hot, width, kKept));
    left -= for_hot;
  }
  if (sample.groups.empty()) {
    return absl::StrCat(text, "\n\n",
                        Table(std::move(namespaces), left, width, kKept), hot);
  }
  // Namespaces get what groups leave, and at least half.
  std::vector<Row> groups = GroupRows(sample);
  left -= 1;
  const int for_groups =
      std::min(static_cast<int>(groups.size()), std::max(left / 2, 2));
  return absl::StrCat(
      text, "\n\n",
      Table(std::move(namespaces), left - for_groups, width, kKept), "\n\n",
      Table(std::move(groups), for_groups, width, kKept), hot);
}

Json ServerJson(const std::string& address, const ServerSample& sample,
                const ServerSample* before) {
  const ServerInfo& s = sample.server;
  Json namespaces = Json::array();
  for (const Namespace& ns : sample.namespaces) {
    Json object = ToJson(ns);
    if (before != nullptr) {
      const Rates rates = RatesOf(*before, sample, ns);
      object["rates"] = {{"puts", rates.puts},
                         {"hits", rates.hits},
                         {"misses", rates.misses},
                         {"deaths", rates.deaths}};
    }
    namespaces.push_back(std::move(object));
  }
  Json groups = Json::array();
  for (const Group& group : sample.groups) {
    Json object = ToJson(group);
    object["lag_ms"] = absl::ToDoubleMilliseconds(LagOf(sample, group));
    groups.push_back(std::move(object));
  }
  Json hot;  // null, unless they are shown.
  if (!sample.hot_namespace.empty()) {
    hot = ToJson(sample.hot, Encodings());
    hot["namespace"] = sample.hot_namespace;
  }
  Json limits;  // null, unless some are shown.
  for (const Limit& limit : LimitsOf(s)) {
    limits[limit.field] = ToJson(*(s.*limit.use));
  }
  return {{"address", address},
          {"version", s.version},
          {"serving", !s.draining},
          {"start_time", ExactTimeText(s.start_time)},
          {"time", ExactTimeText(s.now)},
          {"clock_offset_ms",
           s.clock_offset ? Json(absl::ToDoubleMilliseconds(*s.clock_offset))
                          : Json()},
          {"limits", limits},
          {"journal", s.journal ? JournalJson(sample, before) : Json()},
          {"namespaces", namespaces},
          {"groups", groups},
          {"hot", hot}};
}

}  // namespace timecache::cli
