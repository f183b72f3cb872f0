// append, combine, gather.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

constexpr char kKeyHelp[] = "The key";
constexpr char kTtlHelp[] =
    "The own time to live of an entry that is created, or renewed by --touch";
constexpr char kTouchHelp[] = "Renew the entry's time to live, too";

struct AppendArguments {
  std::string key;
  std::string value;
  AppendOptions options;
};

int RunAppend(const Context& context, const AppendArguments& arguments) {
  const auto key = context.Key(arguments.key).value();
  const auto value = context.Value(arguments.value).value();
  const auto result =
      context.MakeClient().Append(key, value, arguments.options);
  if (!result.ok()) return Refused(context, "appended", result.status());
  return Print(
      context,
      {{"appended", true},
       {"created", result->created},
       {"value_bytes", result->value_bytes},
       {"version", result->version}},
      absl::StrCat(result->created ? "created" : "appended", ", the value has ",
                   result->value_bytes, " bytes, version ", result->version));
}

void AddAppend(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<AppendArguments>();
  CLI::App* append = app.add_subcommand(
      "append", "Append to a value, or store it under a new key");
  append->add_option("key", arguments->key, kKeyHelp)->required();
  append
      ->add_option("value", arguments->value,
                   "What to append; - takes it from standard input, as it is")
      ->required();
  AppendOptions& options = arguments->options;
  AddDuration(*append, "--ttl", options.ttl, kTtlHelp);
  append->add_flag("--touch", options.touch, kTouchHelp);
  AddId(*append, options);
  AddTraceparent(*append, options);
  AddPreconditions(*append, options);
  append->footer(
      "The value stays on the server, and keeps its deadline. Exits with 1 if\n"
      "the condition does not hold, or the value would be too large.\n\n"
      "Examples:\n"
      "  timecachectl append log:7 'login '\n"
      "  timecachectl append log:7 - < more.txt\n"
      "  timecachectl append log:7 'logout ' --touch --json | jq .value_bytes");
  OnRun(append, context, arguments, RunAppend);
}

struct CombineArguments {
  std::string key;
  int64_t operand = 0;
  bool is_xor = false;
  CombineOptions options;
};

int RunCombine(const Context& context, const CombineArguments& arguments) {
  const auto key = context.Key(arguments.key).value();
  const auto result = context.MakeClient().Combine(
      key, arguments.is_xor ? Combination::kXor : Combination::kAdd,
      arguments.operand, arguments.options);
  if (!result.ok()) return Refused(context, "combined", result.status());
  return Print(context,
               {{"combined", true},
                {"result", result->result},
                {"created", result->created},
                {"removed", result->removed},
                {"version", result->version}},
               absl::StrCat(result->result));
}

void AddCombine(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CombineArguments>();
  CLI::App* combine = app.add_subcommand(
      "combine", "Add a number to a value, or xor it with one");
  combine->add_option("key", arguments->key, kKeyHelp)->required();
  combine
      ->add_option("number", arguments->operand,
                   "The number, of 64 bits; -- before a negative one")
      ->required();
  CombineOptions& options = arguments->options;
  combine->add_flag("--xor", arguments->is_xor, "Xor instead of add");
  combine->add_option("--initial", options.initial,
                      "The value of a missing key (0)");
  combine->add_flag("--remove-if-zero", options.remove_if_zero,
                    "Remove the key if the result is 0");
  combine->add_flag("--touch", options.touch, kTouchHelp);
  AddId(*combine, options);
  AddTraceparent(*combine, options);
  AddDuration(*combine, "--ttl", options.ttl, kTtlHelp);
  AddCount(*combine, "--if-version", options.if_version,
           "Only if the key has this version");
  combine->footer(
      R"(Prints the result, which is the new value: a decimal number, as `put` stores
and `get` shows it. The deadline does not change. Exits with 1 if the value
is not a number, the sum exceeds 64 bits, or the version differs.

Examples:
  timecachectl combine visits:7 1 --ttl 1h
  timecachectl combine balance -- -5
  timecachectl combine tuple:9 81985529216486895 --xor --remove-if-zero --json)");
  OnRun(combine, context, arguments, RunCombine);
}

struct GatherArguments {
  std::string key;
  std::string part;
  std::string value;
  GatherOptions options;
};

int RunGather(const Context& context, const GatherArguments& arguments) {
  const auto key = context.Key(arguments.key).value();
  const auto value = context.Value(arguments.value).value();
  const auto result = context.MakeClient().Gather(key, arguments.part, value,
                                                  arguments.options);
  if (!result.ok()) return Refused(context, "gathered", result.status());
  Json object = {{"gathered", true},
                 {"complete", result->parts.has_value()},
                 {"count", result->count},
                 {"duplicate", result->duplicate},
                 {"version", result->version}};
  if (!result->parts) {
    return Print(context, object,
                 absl::StrCat(result->duplicate ? "was in, " : "",
                              result->count, " parts are in"));
  }
  SetParts(object, *result->parts, context.encodings);
  return Print(
      context, object,
      absl::StrCat("complete:\n",
                   PartsText(*result->parts, context.encodings.value, "\n")));
}

void AddGather(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GatherArguments>();
  CLI::App* gather = app.add_subcommand(
      "gather", "Add one of the parts that are collected under a key");
  gather->add_option("key", arguments->key, kKeyHelp)->required();
  gather->add_option("part", arguments->part, "The part's name")->required();
  gather
      ->add_option("value", arguments->value,
                   "Its value; - takes it from standard input, as it is")
      ->required();
  GatherOptions& options = arguments->options;
  auto* count =
      AddCount(*gather, "--parts", options.expected_parts,
               "How many parts complete the key, whatever their names");
  auto* names = gather
                    ->add_option("--names", options.expected_names,
                                 "The names of the parts that complete it")
                    ->delimiter(',')
                    ->type_name("NAME,...")
                    ->allow_extra_args(false);
  count->excludes(names);
  gather->add_flag("--touch", options.touch, kTouchHelp);
  AddId(*gather, options);
  AddTraceparent(*gather, options);
  AddDuration(*gather, "--ttl", options.ttl, kTtlHelp);
  gather->add_flag("--keep-first", options.keep_first,
                   "A part that exists with another value stays: no error");
  AddDuration(*gather, "--remember", options.remember,
              "How long a key that is complete takes no parts again");
  gather->footer(
      R"(Give --parts or --names with the first part of a key; later ones may leave
them out, or say the same. The call that adds the last part prints all of
them as NAME=VALUE, and removes the key; a key that is not complete in time
expires with the parts collected so far. Exits with 1 for a part that exists
with another value, for a key that is remembered as complete, and for one
that expects other parts or has a value.

Examples:
  timecachectl gather user:7 gender f --names gender,age --ttl 1m
  timecachectl gather user:7 age 33 --remember 5m --json
  timecachectl gather order:9 shard-1 - --parts 3 < result.bin)");
  OnRun(gather, context, arguments, RunGather);
}

}  // namespace

void AddChangeCommands(CLI::App& app, Context& context) {
  AddAppend(app, context);
  AddCombine(app, context);
  AddGather(app, context);
}

}  // namespace timecache::cli
