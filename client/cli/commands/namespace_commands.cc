// ns create, get, list, update, delete, rotate.
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

namespace timecache::cli {
namespace {

struct NamespaceArguments {
  std::string ns;
  NamespaceOptions options;
  std::vector<std::string> to_default;  // By the names of their flags.
  bool yes = false;
};

int Print(const Context& context, const absl::StatusOr<Namespace>& ns) {
  if (!ns.ok()) return context.Fail(ns.status());
  if (!context.json) {
    for (const std::string& warning : ns->warnings) Warn(warning);
  }
  const Json object = ToJson(*ns);
  return Print(context, object, Describe(object));
}

int RunListNamespaces(const Context& context) {
  const auto list =
      context.MakeClient().ListNamespaces({.include_statistics = true}).value();
  Json array = Json::array();
  std::vector<Row> table = {
      {"NAME", "TTL", "BUCKETS", "ENTRIES", "BYTES", "DURABILITY"}};
  for (const Namespace& ns : list) {
    array.push_back(ToJson(ns));
    const auto statistics = ns.statistics.value_or(NamespaceStatistics());
    table.push_back(
        {ns.name, DurationText(ns.options.ttl.value_or(absl::ZeroDuration())),
         absl::StrCat(ns.options.num_buckets.value_or(0)),
         CountText(statistics.entries), SizeText(statistics.bytes),
         NameOf(ns.options.durability.value_or(Durability::kMemory))});
  }
  return Print(context, {{"namespaces", array}}, Table(std::move(table)));
}

int RunDeleteNamespace(const Context& context,
                       const NamespaceArguments& arguments) {
  const std::string& name = arguments.ns;
  const Client client = context.MakeClient();
  if (!arguments.yes && IsInteractive()) {
    const auto ns =
        client.GetNamespace(name, {.include_statistics = true}).value();
    if (!Ask(absl::StrCat("delete namespace ", name, " with its ",
                          CountText(ns.statistics ? ns.statistics->entries : 0),
                          " entries?"))) {
      Warn("nothing was deleted");
      return kExitError;
    }
  }
  const absl::Status status = client.DeleteNamespace(name);
  if (!status.ok()) return context.Fail(status);
  return Print(context, {{"namespace", name}, {"deleted", true}},
               absl::StrCat("deleted ", name));
}

int RunRotate(const Context& context, const std::string& name) {
  const auto entries = context.MakeClient().RotateNamespace(name).value();
  return Print(context, {{"namespace", name}, {"entries", entries}},
               absl::StrCat(CountText(entries), " entries died"));
}

std::string FieldOf(const std::string& flag) {
  if (flag == "buckets") return "num_buckets";
  if (flag == "max-ops") return "max_operations_per_second";
  if (flag == "dead-letter") return "dead_letter_namespace";
  return absl::StrReplaceAll(flag, {{"-", "_"}});
}

int RunUpdateNamespace(const Context& context,
                       const NamespaceArguments& arguments) {
  std::vector<std::string> to_default;
  for (const std::string& flag : arguments.to_default) {
    to_default.push_back(FieldOf(flag));
  }
  return Print(context, context.MakeClient().UpdateNamespace(
                            arguments.ns, arguments.options, to_default));
}

template <typename Enum>
void AddEnum(CLI::App& app, const std::string& flag, std::optional<Enum>& value,
             const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [&value](const std::string& name) {
           const auto names = NamesOf<Enum>();
           value = static_cast<Enum>(absl::c_find(names, name) - names.begin() +
                                     1 - kEnumOffset<Enum>);
         },
         help)
      ->transform(OneOf(NamesOf<Enum>()));
}

void AddTimeFlags(CLI::App& app, NamespaceOptions& options) {
  AddDuration(app, "--ttl", options.ttl,
              "Time to live of entries without their own (30s)");
  AddCount(app, "--buckets", options.num_buckets,
           "Time buckets; an entry lives at most ttl/(N-1) longer than its ttl "
           "(101)");
  AddDuration(app, "--max-ttl", options.max_ttl,
              "Longest own time to live (7d)");
  AddDuration(app, "--max-life", options.max_life,
              "Longest life since an entry was created, whatever renews it; "
              "0: no bound (0)");
  AddDuration(app, "--idempotency-window", options.idempotency_window,
              "How long answers to requests with an idempotency id are "
              "remembered; 0: none (0)");
  AddCount(app, "--idempotency-max-ids", options.idempotency_max_ids,
           "Most answers that are remembered (100000)");
  auto* sliding = app.add_flag_callback(
      "--sliding", [&options] { options.sliding = true; },
      "Get renews the time to live");
  app.add_flag_callback(
         "--no-sliding", [&options] { options.sliding = false; },
         "Get does not renew it (the default)")
      ->excludes(sliding);
}

void AddLimitFlags(CLI::App& app, NamespaceOptions& options) {
  AddCount(app, "--max-entries", options.max_entries,
           "Most live entries; 0: no limit (0)");
  AddSize(app, "--max-bytes", options.max_bytes,
          "Most bytes of live keys and values; 0: no limit (0)");
  AddEnum(app, "--limit-policy", options.limit_policy,
          "What a put beyond a limit does (reject)");
  AddSize(app, "--max-value-bytes", options.max_value_bytes,
          "Largest value, up to 16MiB (1MiB)");
  AddCount(app, "--max-ops", options.max_operations_per_second,
           "Most operations a second; 0: no limit (0)");
}

void AddDurability(CLI::App& app, NamespaceOptions& options) {
  AddEnum(app, "--durability", options.durability,
          "What it survives: async a crash of the server, sync also a loss of "
          "power; both need a journal in the server; replicated, only in a "
          "cluster, the loss of a machine (memory)");
  AddEnum(app, "--restart-policy", options.restart_policy,
          "What a restart of the server means for its entries: fire, entries "
          "due meanwhile die at start; pause, the downtime does not count "
          "(fire)");
}

void AddOptionFlags(CLI::App& app, NamespaceOptions& options) {
  AddTimeFlags(app, options);
  AddLimitFlags(app, options);
  AddDuration(app, "--event-retention", options.event_retention,
              "How long events stay readable for watch --from-earliest (5m)");
  AddSize(app, "--event-retention-bytes", options.event_retention_bytes,
          "Memory for them (64MiB)");
  AddDuration(app, "--change-retention", options.change_retention,
              "How long puts, renewals and removals stay readable for watch "
              "--changes; 0: not at all (0)");
  AddSize(app, "--change-retention-bytes", options.change_retention_bytes,
          "Memory for them (64MiB)");
  AddSize(
      app, "--max-backlog-bytes", options.max_backlog_bytes,
      "Memory for the events that all its consumer groups have not settled; 0: "
      "--max-bytes and --event-retention-bytes together, or 256MiB (0)");
  AddDuration(
      app, "--unused-group-ttl", options.unused_group_ttl,
      "How long a group that its first member created may be without a member "
      "before it is deleted; 0s: it stays (168h)");
  app.add_option_function<std::string>(
         "--dead-letter",
         [&options](const std::string& ns) {
           options.dead_letter_namespace = ns;
         },
         "Where events go that a consumer group has delivered --max-attempts "
         "times without success; '': none ('')")
      ->type_name("NAMESPACE");
  AddDurability(app, options);
}

// Adds `ns NAME-OF-COMMAND NAMESPACE`, which does `run`.
template <typename Run>
CLI::App* AddNamespaceCommand(
    CLI::App& ns, Context& context, const std::string& command,
    const std::string& help,
    const std::shared_ptr<NamespaceArguments>& arguments, Run run) {
  CLI::App* app = ns.add_subcommand(command, help);
  app->add_option("name", arguments->ns, "The namespace")->required();
  OnRunAbout(app, context, arguments, run);
  return app;
}

void AddCreateAndUpdate(CLI::App& ns, Context& context) {
  auto arguments = std::make_shared<NamespaceArguments>();
  CLI::App* create = AddNamespaceCommand(
      ns, context, "create", "Create a namespace", arguments,
      [](const Context& about, const NamespaceArguments& a) {
        return Print(about,
                     about.MakeClient().CreateNamespace(a.ns, a.options));
      });
  AddOptionFlags(*create, arguments->options);
  AddCount(*create, "--shards", arguments->options.num_shards,
           "Parts, each with its own lock, a power of two (16)");
  AddCount(*create, "--partitions", arguments->options.num_partitions,
           "Partitions, each with its own events and share of the limits, 1 to "
           "64 (the server's default_partitions)");
  create->footer(
      "Examples:\n"
      "  timecachectl ns create sessions --ttl 30m --sliding --max-life 12h\n"
      "  timecachectl ns create cache --ttl 5m --buckets 11 --max-bytes 1GiB "
      "\\\n      --limit-policy evict-oldest\n"
      "  timecachectl ns create orders --ttl 15m --dead-letter orders-failed\n"
      "  timecachectl ns create payments --ttl 1h --durability sync");

  arguments = std::make_shared<NamespaceArguments>();
  CLI::App* update = AddNamespaceCommand(
      ns, context, "update", "Change a namespace's options while it is in use",
      arguments, RunUpdateNamespace);
  AddOptionFlags(*update, arguments->options);
  AddDefault(*update, arguments->to_default);
  update->footer(
      "Changes the given options; the others stay. Existing entries keep "
      "their\n"
      "deadlines. --durability async and sync can be changed into each other;\n"
      "whether it is memory is fixed when the namespace is created.\n\n"
      "Examples:\n"
      "  timecachectl ns update sessions --ttl 1h --max-entries 1000000\n"
      "  timecachectl ns update sessions --default ttl --default max-ttl");
}

void AddDelete(CLI::App& ns, Context& context) {
  auto arguments = std::make_shared<NamespaceArguments>();
  CLI::App* app = AddNamespaceCommand(
      ns, context, "delete",
      "Delete a namespace with everything in it, without events", arguments,
      RunDeleteNamespace);
  app->add_flag("-y,--yes", arguments->yes, "Do not ask");
  app->footer(
      "Asks first at a terminal; a script is not asked.\n\n"
      "Examples:\n"
      "  timecachectl ns delete sessions\n"
      "  timecachectl ns delete sessions --yes");
}

}  // namespace

void AddNamespaceCommands(CLI::App& app, Context& context) {
  CLI::App* ns = app.add_subcommand("ns", "Create, show and change namespaces");
  ns->require_subcommand(1);
  ns->callback([&context] { context.manages_namespaces = true; });
  ns->footer(
      "Examples:\n"
      "  timecachectl ns create sessions --ttl 30m --sliding\n"
      "  timecachectl ns list\n"
      "  timecachectl ns get sessions\n"
      "  timecachectl ns update sessions --max-entries 1000000\n"
      "  timecachectl ns groups sessions\n"
      "  timecachectl ns create --help");
  AddCreateAndUpdate(*ns, context);
  AddNamespaceCommand(
      *ns, context, "get", "Show a namespace: options and statistics",
      std::make_shared<NamespaceArguments>(),
      [](const Context& about, const NamespaceArguments& a) {
        return Print(about, about.MakeClient().GetNamespace(
                                a.ns, {.include_statistics = true}));
      })
      ->footer(
          "Example:\n"
          "  timecachectl ns get sessions --json | jq .statistics.expired");
  CLI::App* list = ns->add_subcommand("list", "List all namespaces");
  list->footer("Example:\n  timecachectl ns list");
  OnRun(list, context, RunListNamespaces);
  AddDelete(*ns, context);
  AddNamespaceCommand(
      *ns, context, "rotate",
      "Kill a namespace's oldest bucket now; watchers receive its entries",
      std::make_shared<NamespaceArguments>(),
      [](const Context& about, const NamespaceArguments& a) {
        return RunRotate(about, a.ns);
      })
      ->footer("Example:\n  timecachectl ns rotate sessions");
  AddGroupCommands(*ns, context);
  AddGroupEventCommands(*ns, context);
}

}  // namespace timecache::cli
