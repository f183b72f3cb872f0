// contains, size, touch.
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/progress.h"

namespace timecache::cli {
namespace {

constexpr char kDataKeyHelp[] = "The key";

int RunContains(const Context& context, const std::string& argument) {
  const auto key = context.Key(argument).value();
  const auto contains = context.MakeClient().Contains(key).value();
  return Print(context, {{"contains", contains}}, contains ? "yes" : "no",
               contains ? kExitDone : kExitNotFound);
}

void AddContains(CLI::App& app, Context& context) {
  auto key = std::make_shared<std::string>();
  CLI::App* contains =
      app.add_subcommand("contains", "Report whether a key exists");
  contains->add_option("key", *key, kDataKeyHelp)->required();
  contains->footer(
      "Exits with 1 if it is not.\n\n"
      "Example:\n"
      "  timecachectl contains session:7 && echo still here");
  OnRun(contains, context, key, RunContains);
}

int RunSize(const Context& context) {
  const auto size = context.MakeClient().Size().value();
  return Print(context,
               {{"namespace", context.ns()},
                {"entries", size.entries},
                {"bytes", size.bytes}},
               absl::StrCat(CountText(size.entries), " entries, ",
                            SizeText(size.bytes)));
}

void AddSizeCommand(CLI::App& app, Context& context) {
  CLI::App* size = app.add_subcommand(
      "size", "Count a namespace's live entries and their bytes");
  size->footer(
      "Examples:\n"
      "  timecachectl size\n"
      "  timecachectl size -n sessions --json | jq .entries");
  OnRun(size, context, RunSize);
}

struct TouchArguments {
  std::string key;
  TouchOptions options;
};

int RunTouch(const Context& context, const TouchArguments& arguments) {
  const auto key = context.Key(arguments.key).value();
  const auto version = context.MakeClient().Touch(key, arguments.options);
  if (!version.ok()) return Refused(context, "touched", version.status());
  if (!*version) return Miss(context, {{"touched", false}});
  return Print(context, {{"touched", true}, {"version", **version}},
               absl::StrCat("touched, version ", **version));
}

void AddTouch(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TouchArguments>();
  CLI::App* touch = app.add_subcommand(
      "touch", "Give an entry a fresh time to live, without a new value");
  touch->add_option("key", arguments->key, kDataKeyHelp)->required();
  TouchOptions& options = arguments->options;
  auto* ttl = AddDuration(
      *touch, "--ttl", options.ttl,
      "Its time to live from now on; else the one with which it was put");
  touch
      ->add_flag("--namespace-ttl", options.namespace_ttl,
                 "The namespace's time to live from now on, none of its own")
      ->excludes(ttl);
  AddExpireAt(*touch, options);
  AddCount(*touch, "--if-version", options.if_version,
           "Only this version, for example a lock only while it is held");
  touch->footer(
      "Exits with 1 if the key does not exist, or has another version. The\n"
      "version does not change.\n\n"
      "Examples:\n"
      "  timecachectl touch session:7\n"
      "  timecachectl touch session:7 --ttl 2h\n"
      "  timecachectl touch session:7 --namespace-ttl\n"
      "  timecachectl touch lock:job --if-version 4711");
  OnRun(touch, context, arguments, RunTouch);
}

}  // namespace

void AddDataCommands(CLI::App& app, Context& context) {
  AddPutCommand(app, context);
  AddGetCommand(app, context);
  AddRemoveCommand(app, context);
  AddChangeCommands(app, context);
  AddContains(app, context);
  AddSizeCommand(app, context);
  AddTouch(app, context);
  AddBatchCommand(app, context);
}

}  // namespace timecache::cli
