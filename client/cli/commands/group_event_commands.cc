// ns group-seek, group-unsettled, group-settle: what an operator does with a group's events.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "timecache/group_position.h"

namespace timecache::cli {
namespace {

struct GroupEventArguments {
  std::string ns;
  std::string group;
  // seek
  GroupPosition position;
  SeekOptions seek;
  // unsettled
  std::string prefix;
  bool values = false;
  uint64_t limit = 100;
  // settle
  std::vector<std::string> keys;
  std::vector<uint64_t> event_ids;
  bool ack = false;
  bool nack = false;
  bool put_back = false;
  std::optional<Settle> how;
  std::string what;  // "acked"
  std::string reason;
  std::optional<absl::Duration> delay;
  std::optional<absl::Duration> ttl;
};

int RunSeek(const Context& context, const GroupEventArguments& a) {
  const SeekResult result =
      context.MakeClient().SeekGroup(a.group, a.position, a.seek).value();
  return Print(
      context,
      {{"namespace", a.ns},
       {"group", a.group},
       {"unsettled", result.unsettled},
       {"dropped", result.dropped}},
      absl::StrCat("moved ", a.group, ": ", CountText(result.unsettled),
                   " to deliver, ", CountText(result.dropped), " dropped"));
}

const char* StateText(UnsettledState state) {
  switch (state) {
    case UnsettledState::kReady:
      return "ready";
    case UnsettledState::kBlockedByKey:
      return "blocked-by-key";
    case UnsettledState::kInFlight:
      return "in-flight";
    case UnsettledState::kDelayed:
      return "delayed";
    case UnsettledState::kDeadLettering:
      return "dead-lettering";
    case UnsettledState::kUnknown:
      break;
  }
  return "unknown";
}

Json UnsettledJson(const UnsettledEvent& unsettled, const Encodings& encodings,
                   bool keys_only) {
  Json object = ToJson(unsettled.event, encodings, keys_only);
  // Also of one that has not been delivered.
  object["event_id"] = unsettled.event.event_id;
  object["attempt"] = unsettled.event.attempt;
  object["state"] = StateText(unsettled.state);
  object["last_reason"] = unsettled.event.last_reason;
  if (unsettled.state == UnsettledState::kInFlight) {
    object["member_id"] = unsettled.member_id;
  }
  if (unsettled.since) object["since"] = ExactTimeText(*unsettled.since);
  if (unsettled.due) object["due"] = ExactTimeText(*unsettled.due);
  return object;
}

int RunUnsettled(const Context& context, const GroupEventArguments& a) {
  const std::string prefix = context.Key(a.prefix).value();
  std::vector<Row> table = {{"KEY", "EVENT", "DIED", "STATE", "ATTEMPT",
                             "MEMBER", "SINCE", "DUE", "LAST REASON"}};
  Json array = Json::array();
  uint64_t left = a.limit;
  bool more = false;
  const absl::Status status = context.MakeClient().ListUnsettled(
      a.group, {.key_prefix = prefix, .include_values = a.values},
      [&](const UnsettledEvent& each) {
        if (left == 0) {
          more = true;
          return false;
        }
        --left;
        const ExpiredEvent& event = each.event;
        array.push_back(UnsettledJson(each, context.encodings, !a.values));
        const bool held = each.state == UnsettledState::kInFlight;
        table.push_back(
            {Encode(event.key, context.encodings.key),
             absl::StrCat(event.event_id), TimeText(event.death_time),
             StateText(each.state), absl::StrCat(event.attempt),
             held ? absl::StrCat(each.member_id) : "-",
             each.since ? TimeText(*each.since) : "-",
             each.due ? TimeText(*each.due) : "-",
             event.last_reason.empty() ? "-" : Escape(event.last_reason)});
        return true;
      });
  if (!status.ok()) return context.Fail(status);
  std::string text = array.empty() ? "all is settled" : Table(std::move(table));
  if (more) absl::StrAppend(&text, "\n(more: see --limit)");
  return Print(context,
               {{"namespace", a.ns},
                {"group", a.group},
                {"events", array},
                {"more", more}},
               text);
}

// The events that the arguments name.
absl::StatusOr<std::vector<UnsettledEvent>> Selected(
    const Context& context, const Client& client,
    const GroupEventArguments& a) {
  std::vector<UnsettledEvent> found;
  for (const std::string& argument : a.keys) {
    const auto key = context.Key(argument);
    if (!key.ok()) return key.status();
    const absl::Status status = client.ListUnsettled(
        a.group, {.key_prefix = *key}, [&](UnsettledEvent event) {
          if (event.event.key == *key) found.push_back(std::move(event));
          return true;
        });
    if (!status.ok()) return status;
  }
  if (a.event_ids.empty()) return found;
  const absl::Status status =
      client.ListUnsettled(a.group, {}, [&](UnsettledEvent event) {
        if (absl::c_linear_search(a.event_ids, event.event.event_id)) {
          found.push_back(std::move(event));
        }
        return true;
      });
  if (!status.ok()) return status;
  return found;
}

int RunSettle(const Context& context, const GroupEventArguments& a) {
  const Client client = context.MakeClient();
  const auto found = Selected(context, client, a).value();
  std::vector<Settlement> settlements;
  settlements.reserve(found.size());
  for (const UnsettledEvent& event : found) {
    settlements.push_back({event.event.delivery_token, *a.how});
  }
  bool failed = false;
  for (size_t begin = 0; begin < settlements.size(); begin += kMaxSettlements) {
    const size_t end = std::min(begin + kMaxSettlements, settlements.size());
    const auto results =
        client
            .Settle(a.group, {settlements.begin() + static_cast<long>(begin),
                              settlements.begin() + static_cast<long>(end)})
            .value();
    for (size_t i = 0; i < results.size(); ++i) {
      const ExpiredEvent& event = found[begin + i].event;
      const absl::Status& status = results[i].status;
      failed |= !status.ok();
      Json object;
      SetBytes(object, "key", event.key, context.encodings.key);
      object["event_id"] = event.event_id;
      object[a.what] = status.ok();
      if (!status.ok()) object["error"] = std::string(status.message());
      const std::string text = absl::StrCat(
          Encode(event.key, context.encodings.key), " (event ", event.event_id,
          "): ", status.ok() ? a.what : std::string(status.message()));
      const bool written = context.json ? WriteJson(object) : WriteLine(text);
      if (!written) return context.FailToWrite();
    }
  }
  if (!Flush()) return context.FailToWrite();
  if (found.empty()) Warn("no such event is unsettled");
  return found.empty() || failed ? kExitNotFound : kExitDone;
}

template <typename Run>
CLI::App* Add(CLI::App& ns, Context& context, const std::string& name,
              const std::string& help,
              const std::shared_ptr<GroupEventArguments>& arguments, Run run) {
  CLI::App* const app = ns.add_subcommand(name, help);
  app->add_option("namespace", arguments->ns, "The namespace")->required();
  app->add_option("group", arguments->group, "The group")->required();
  OnRunAbout(app, context, arguments, run);
  return app;
}

void AddSeek(CLI::App& ns, Context& context) {
  const auto arguments = std::make_shared<GroupEventArguments>();
  CLI::App* const seek =
      Add(ns, context, "group-seek", "Move a group to a position of the log",
          arguments, RunSeek);
  AddPositionFlags(*seek, arguments->position, "");
  seek->add_flag("--drop-unsettled", arguments->seek.drop_unsettled,
                 "Drop what is before the position and not settled");
  seek->footer(
      R"(Without a position it goes on with what dies from now on. Events from the
position on are delivered as first attempts, those that were settled, too, as
far as they are retained; what members hold comes back.

Examples:
  timecachectl ns group-seek orders billing --time 2026-03-01T08:00:00Z
  timecachectl ns group-seek orders billing --drop-unsettled)");
}

void AddUnsettled(CLI::App& ns, Context& context) {
  const auto arguments = std::make_shared<GroupEventArguments>();
  CLI::App* const unsettled =
      Add(ns, context, "group-unsettled",
          "List the events that a group has not settled, the oldest first",
          arguments, RunUnsettled);
  unsettled->add_option("--prefix", arguments->prefix,
                        "Only keys that begin with this");
  unsettled->add_flag("--values", arguments->values,
                      "Values, too, with --json");
  AddCount(*unsettled, "--limit", arguments->limit, "Most events (100)");
  unsettled->footer(
      R"(STATE: ready, blocked-by-key (an earlier event of the key is unsettled),
in-flight (MEMBER has it), delayed, dead-lettering. DUE: when it times out or is
tried next. ATTEMPT is 0 if it has not been delivered.

Examples:
  timecachectl ns group-unsettled orders billing
  timecachectl ns group-unsettled orders billing --json --values |
      jq '.events[] | select(.state == "delayed")')");
}

void AddSettle(CLI::App& ns, Context& context) {
  const auto arguments = std::make_shared<GroupEventArguments>();
  CLI::App* const settle =
      Add(ns, context, "group-settle",
          "Settle events of a group, whoever holds them", arguments, RunSettle);
  auto* const a = arguments.get();
  settle->add_option("--key", a->keys, "All unsettled events of this key")
      ->allow_extra_args(false);
  settle->add_option("--event", a->event_ids, "The event with this number")
      ->allow_extra_args(false);
  CLI::Option_group* const how = settle->add_option_group("how");
  how->add_flag("--ack", a->ack, "It is done");
  how->add_flag("--nack", a->nack, "Deliver it again");
  how->add_option("--terminate", a->reason,
                  "To the dead letters now, for this reason")
      ->type_name("REASON");
  how->add_flag("--put-back", a->put_back, "Back into the namespace");
  how->require_option(1);
  settle->add_option("--reason", a->reason, "Why, of --nack");
  AddDuration(*settle, "--delay", a->delay, "How long it waits, of --nack");
  AddDuration(*settle, "--ttl", a->ttl,
              "The entry's own time to live, of --put-back");
  OnRun(
      settle, context, arguments,
      [](Context about, const GroupEventArguments& given) {
        about.namespaces = {given.ns};
        return RunCommand(about, RunSettle, given);
      },
      [a](const GroupEventArguments&) {
        if (a->keys.empty() && a->event_ids.empty()) {
          throw CLI::ValidationError("group-settle", "give --key or --event");
        }
        if (a->ack) {
          a->how = Settle::Ack();
          a->what = "acked";
        } else if (a->nack) {
          a->how = Settle::Nack(a->delay, a->reason);
          a->what = "nacked";
        } else if (a->put_back) {
          a->how = Settle::PutBack(a->ttl);
          a->what = "put_back";
        } else {
          a->how = Settle::Terminate(a->reason);
          a->what = "terminated";
        }
      });
  settle->footer(
      R"(Needs what a member needs: VERB_SETTLE. Exits with 1 if an event was not
settled, or there is none.

Examples:
  timecachectl ns group-settle orders billing --key order-17 --ack
  timecachectl ns group-settle orders billing --event 4711 --terminate "bad data")");
}

}  // namespace

void AddPositionFlags(CLI::App& app, GroupPosition& position,
                      const std::string& from) {
  CLI::Option* const earliest = app.add_flag_callback(
      "--" + from + "earliest",
      [&position] { position.start = WatchStart::kEarliest; },
      "With the oldest retained event; else with entries that die from now on");
  CLI::Option* const time =
      AddTime(app, "--" + from + "time", position.time,
              "With the first retained event that died after this time");
  time->excludes(earliest);
  app.add_option_function<std::string>(
         "--" + from + "token",
         [&position](const std::string& text) {
           if (!absl::Base64Unescape(text, &position.resume_token.emplace())) {
             throw CLI::ValidationError("token", "is no base64");
           }
         },
         "With the event after a message of watch: its resume token, in base64")
      ->excludes(earliest)
      ->excludes(time);
}

void AddGroupEventCommands(CLI::App& ns, Context& context) {
  AddSeek(ns, context);
  AddUnsettled(ns, context);
  AddSettle(ns, context);
}

}  // namespace timecache::cli
