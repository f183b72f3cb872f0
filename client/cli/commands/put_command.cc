// put.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

struct PutArguments {
  std::string key;
  std::string value;
  PutOptions options;
};

int RunPut(const Context& context, const PutArguments& arguments) {
  const auto key = context.Key(arguments.key).value();
  const auto value = context.Value(arguments.value).value();
  const auto result = context.MakeClient().Put(key, value, arguments.options);
  if (!result.ok()) return Refused(context, "stored", result.status());
  Json object = {{"stored", true}, {"version", result->version}};
  std::string text = absl::StrCat("stored, version ", result->version);
  if (arguments.options.return_previous) {
    object["previous"] = nullptr;
    if (result->previous) {
      object["previous"] = ToJson(*result->previous, context.encodings);
      absl::StrAppend(&text, "\nprevious: ",
                      ValueText(*result->previous, context.encodings.value));
    }
  }
  return Print(context, object, text);
}

}  // namespace

void AddPutCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PutArguments>();
  CLI::App* put = app.add_subcommand("put", "Store a value under a key");
  put->add_option("key", arguments->key, "The key")->required();
  put->add_option("value", arguments->value,
                  "The value; - takes it from standard input, as it is")
      ->required();
  PutOptions& options = arguments->options;
  auto* ttl = AddDuration(*put, "--ttl", options.ttl,
                          "The entry's own time to live; else the namespace's");
  auto* expire_at = AddExpireAt(*put, options);
  AddId(*put, options);
  AddTraceparent(*put, options);
  put->add_flag("--keep-deadline", options.keep_deadline,
                "An existing entry keeps its deadline")
      ->excludes(ttl)
      ->excludes(expire_at);
  AddPreconditions(*put, options);
  put->add_flag("--previous", options.return_previous,
                "Show the entry that was replaced");
  put->footer(
      "Exits with 1 if the condition does not hold.\n\n"
      "Examples:\n"
      "  timecachectl put session:7 'basket=3' --ttl 30m\n"
      "  timecachectl put lock:job host-a --if-absent --ttl 10s\n"
      "  timecachectl put session:7 'basket=4' --keep-deadline\n"
      "  timecachectl put reminder:7 pay --expire-at \"$(date -d 'friday 9am' "
      "+%s)\"\n"
      "  timecachectl put job:7 order --traceparent \"$TRACEPARENT\"\n"
      "  timecachectl put photo:1 - < photo.jpg\n"
      "  timecachectl put --key-hex 00ff --hex cafe\n"
      "  timecachectl put temperature -- -5");
  OnRun(put, context, arguments, RunPut);
}

}  // namespace timecache::cli
