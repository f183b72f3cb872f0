// ns groups, group-create, group-get, group-update, group-members, group-delete.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "timecache/group_types.h"

namespace timecache::cli {
namespace {

struct GroupArguments {
  std::string ns;
  std::string group;
  GroupOptions options;
  std::vector<std::string> to_default;  // By the names of their flags.
  GroupPosition start;
  bool yes = false;
};

int Print(const Context& context, const absl::StatusOr<Group>& group) {
  if (!group.ok()) return context.Fail(group.status());
  const Json object = ToJson(*group);
  return Print(context, object, Describe(object));
}

std::string OldestText(const GroupStatistics& statistics) {
  if (!statistics.oldest_unsettled) return "-";
  return TimeText(*statistics.oldest_unsettled);
}

int RunListGroups(const Context& context, const GroupArguments& arguments) {
  const auto list =
      context.MakeClient().ListGroups({.include_statistics = true}).value();
  Json array = Json::array();
  std::vector<Row> table = {{"NAME", "MEMBERS", "BACKLOG", "IN FLIGHT",
                             "OLDEST", "DELIVERED", "SETTLED", "DEAD LETTERS",
                             "LOST"}};
  for (const Group& group : list) {
    array.push_back(ToJson(group));
    const auto s = group.statistics.value_or(GroupStatistics());
    table.push_back({group.name, CountText(s.members), CountText(s.backlog),
                     CountText(s.in_flight), OldestText(s),
                     CountText(s.delivered), CountText(s.acked + s.put_back),
                     CountText(s.dead_lettered), CountText(s.lost)});
  }
  return Print(context, {{"namespace", arguments.ns}, {"groups", array}},
               Table(std::move(table)));
}

int RunMembers(const Context& context, const GroupArguments& arguments) {
  const auto members =
      context.MakeClient().ListMembers(arguments.group).value();
  Json array = Json::array();
  std::vector<Row> table = {
      {"PRINCIPAL", "PEER", "SINCE", "IN FLIGHT", "WINDOW", "STATE"}};
  for (const GroupMember& member : members) {
    array.push_back(ToJson(member));
    table.push_back({member.principal, member.peer, TimeText(member.since),
                     CountText(member.in_flight), CountText(member.window),
                     member.unresponsive ? "unresponsive"
                     : member.active     ? "active"
                                         : "waits"});
  }
  return Print(context,
               {{"namespace", arguments.ns},
                {"group", arguments.group},
                {"members", array}},
               Table(std::move(table)));
}

int RunUpdate(const Context& context, const GroupArguments& arguments) {
  std::vector<std::string> to_default;
  for (const std::string& flag : arguments.to_default) {
    to_default.push_back(absl::StrReplaceAll(flag, {{"-", "_"}}));
  }
  return Print(context, context.MakeClient().UpdateGroup(
                            arguments.group, arguments.options, to_default));
}

int RunDelete(const Context& context, const GroupArguments& arguments) {
  if (!arguments.yes && IsInteractive() &&
      !Ask(absl::StrCat("delete group ", arguments.group, " of ", arguments.ns,
                        " with all that it has not settled?"))) {
    Warn("nothing was deleted");
    return kExitError;
  }
  const absl::Status status = context.MakeClient().DeleteGroup(arguments.group);
  if (!status.ok()) return context.Fail(status);
  return Print(context,
               {{"namespace", arguments.ns},
                {"group", arguments.group},
                {"deleted", true}},
               absl::StrCat("deleted ", arguments.group));
}

void AddOptionFlags(CLI::App& app, GroupOptions& options) {
  AddDuration(app, "--ack-timeout", options.ack_timeout,
              "How long a member has to settle an event (30s)");
  AddCount(app, "--max-attempts", options.max_attempts,
           "How often an event is delivered before it goes to the namespace's "
           "--dead-letter, if it has one (5)");
  AddSize(
      app, "--max-backlog-bytes", options.max_backlog_bytes,
      "Memory for unsettled events; beyond it the oldest are lost and counted "
      "(256MiB)");
  AddDuration(
      app, "--unused-ttl", options.unused_ttl,
      "How long it may be without a member before it is deleted; 0s: it stays "
      "(0s)");
  AddDuration(app, "--retry-delay", options.retry_delay,
              "How long an event waits after a first attempt in vain (0s)");
  AddCount(app, "--retry-multiplier", options.retry_multiplier,
           "How many times longer it waits after each further one (2)");
  AddDuration(app, "--max-retry-delay", options.max_retry_delay,
              "The longest such wait (168h)");
  AddCount(app, "--retry-jitter-percent", options.retry_jitter_percent,
           "How much shorter, at random, each wait may be (0)");
  app.add_option_function<std::vector<std::string>>(
         "--retry-delays",
         [&options](const std::vector<std::string>& delays) {
           options.retry_delays.emplace();
           for (const std::string& text : delays) {
             const auto delay = ParseDuration(text);
             if (!delay.ok()) {
               throw CLI::ValidationError(
                   "--retry-delays", std::string(delay.status().message()));
             }
             options.retry_delays->push_back(*delay);
           }
         },
         "The waits after the first, second, ... attempt in vain, with commas; "
         "in place of the three above (none)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("DURATIONS");
  auto* paused = app.add_flag_callback(
      "--paused", [&options] { options.paused = true; },
      "Deliver nothing until --no-paused");
  app.add_flag_callback(
         "--no-paused", [&options] { options.paused = false; },
         "Deliver again (the default)")
      ->excludes(paused);
  auto* single = app.add_flag_callback(
      "--single-active", [&options] { options.single_active = true; },
      "One member gets all events; when its stream ends, the next one");
  app.add_flag_callback(
         "--no-single-active", [&options] { options.single_active = false; },
         "All members get events (the default)")
      ->excludes(single);
}

// Adds `ns NAME-OF-COMMAND NAMESPACE`, which does `run`.
template <typename Run>
CLI::App* AddGroupsCommand(CLI::App& ns, Context& context,
                           const std::string& command, const std::string& help,
                           const std::shared_ptr<GroupArguments>& arguments,
                           Run run) {
  CLI::App* app = ns.add_subcommand(command, help);
  app->add_option("namespace", arguments->ns, "The namespace")->required();
  OnRunAbout(app, context, arguments, run);
  return app;
}

// The same with a group behind the namespace.
template <typename Run>
CLI::App* AddGroupCommand(CLI::App& ns, Context& context,
                          const std::string& command, const std::string& help,
                          const std::shared_ptr<GroupArguments>& arguments,
                          Run run) {
  CLI::App* app = AddGroupsCommand(ns, context, command, help, arguments, run);
  app->add_option("group", arguments->group, "The group")->required();
  return app;
}

void AddGroupCreate(CLI::App& ns, Context& context) {
  auto arguments = std::make_shared<GroupArguments>();
  CLI::App* create = AddGroupCommand(
      ns, context, "group-create", "Create a consumer group", arguments,
      [](const Context& about, const GroupArguments& a) {
        return Print(
            about, about.MakeClient().CreateGroup(a.group, a.options, a.start));
      });
  AddOptionFlags(*create, arguments->options);
  create->add_option("--key-prefix", arguments->options.key_prefix,
                     "Only events of keys that begin with this; fixed");
  AddPositionFlags(*create, arguments->start, "from-");
  create->footer(
      R"(watch --group also creates a group, at its first use, with the options in
parentheses. From its creation on a group keeps the events, also while it
has no members.

Example:
  timecachectl ns group-create orders billing --ack-timeout 2m \
      --max-attempts 10 --from-earliest)");
}

void AddGroupUpdate(CLI::App& ns, Context& context) {
  auto arguments = std::make_shared<GroupArguments>();
  CLI::App* update = AddGroupCommand(
      ns, context, "group-update",
      "Change a group's options while it is in use", arguments, RunUpdate);
  AddOptionFlags(*update, arguments->options);
  AddDefault(*update, arguments->to_default);
  update->footer(
      "Changes the given options; the others stay. Events that a member holds "
      "keep\n"
      "their time-out.\n\n"
      "Examples:\n"
      "  timecachectl ns group-update orders billing --ack-timeout 5m\n"
      "  timecachectl ns group-update orders billing --default max-attempts");
}

}  // namespace

void AddGroupCommands(CLI::App& ns, Context& context) {
  AddGroupsCommand(ns, context, "groups",
                   "List a namespace's consumer groups and their lag",
                   std::make_shared<GroupArguments>(), RunListGroups)
      ->footer(
          R"(BACKLOG: events that wait for a member; IN FLIGHT: events that a member holds;
OLDEST: when the oldest of both died. DELIVERED counts every attempt, SETTLED
events that were acknowledged or put back. LOST: events dropped unsettled,
beyond the group's --max-backlog-bytes. --json shows all statistics and
options.

Examples:
  timecachectl ns groups orders
  timecachectl ns groups orders --json | jq '.groups[].statistics.backlog')");
  AddGroupCreate(ns, context);
  AddGroupCommand(
      ns, context, "group-get", "Show a group: options and statistics",
      std::make_shared<GroupArguments>(),
      [](const Context& about, const GroupArguments& a) {
        return Print(about, about.MakeClient().GetGroup(
                                a.group, {.include_statistics = true}));
      })
      ->footer(
          "Example:\n"
          "  timecachectl ns group-get orders billing --json | jq .statistics");
  AddGroupUpdate(ns, context);
  AddGroupCommand(ns, context, "group-members",
                  "List the streams that are members of a group",
                  std::make_shared<GroupArguments>(), RunMembers)
      ->footer(
          R"(The oldest first: who, from where, since when; IN FLIGHT: events that it holds;
WINDOW: how many it may hold now, fewer than its --max-in-flight if it let
events time out. STATE: active; waits: another one is the single active member;
unresponsive: it let an event time out and has settled none since. Callers of
fetch are no members.

Examples:
  timecachectl ns group-members orders billing
  timecachectl ns group-members orders billing --json | jq '.members[].peer')");
  auto arguments = std::make_shared<GroupArguments>();
  CLI::App* group_delete = AddGroupCommand(
      ns, context, "group-delete",
      "Delete a group with all that it has not settled", arguments, RunDelete);
  group_delete->add_flag("-y,--yes", arguments->yes, "Do not ask");
  group_delete->footer(
      "Its members end with an error. Asks first at a terminal; a script is "
      "not\nasked.\n\n"
      "Example:\n"
      "  timecachectl ns group-delete orders billing");
}

}  // namespace timecache::cli
