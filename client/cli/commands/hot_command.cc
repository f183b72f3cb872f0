// hot: the keys of a namespace that are used most.
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"

namespace timecache::cli {
namespace {

constexpr uint64_t kDefaultHotKeys = 10;
constexpr uint64_t kMaxHotKeys = 64;

struct HotArguments {
  uint64_t count = kDefaultHotKeys;
};

int RunHot(const Context& context, const HotArguments& arguments) {
  const HotKeys hot =
      context.MakeClient()
          .GetHotKeys(context.ns(), static_cast<uint32_t>(arguments.count))
          .value();
  Json object = ToJson(hot, context.encodings);
  object["namespace"] = context.ns();
  std::vector<Row> table = {{"KEY", "READ/S", "WRITE/S", "VALUE"}};
  for (const HotKey& key : hot.keys) {
    table.push_back(
        {Encode(key.key, context.encodings.key), RateText(key.reads_per_second),
         RateText(key.writes_per_second), SizeText(key.value_bytes)});
  }
  return Print(context, object,
               absl::StrCat(Table(std::move(table)), "\n",
                            RateText(hot.operations_per_second),
                            " operations/s over ", DurationText(hot.window),
                            ", a sample of ", CountText(hot.sampled)));
}

}  // namespace

void AddHotCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<HotArguments>();
  CLI::App* hot = app.add_subcommand("hot", "Show the keys that are used most");
  AddCount(
      *hot, "--count",
      [arguments](uint64_t count) {
        if (count < 1 || count > kMaxHotKeys) {
          throw CLI::ValidationError("--count", "must be from 1 to 64");
        }
        arguments->count = count;
      },
      "How many to show (10)");
  hot->footer(
      "Estimates, by a sample of the operations of about the last minute: one "
      "of 256,\n"
      "and less where there are many. VALUE: the value's size when it was last "
      "seen;\n"
      "keys that the sample has fewer than four times are left out.\n\n"
      "Examples:\n"
      "  timecachectl hot -n sessions\n"
      "  timecachectl hot -n sessions --count 3 --json | jq -r '.keys[].key'");
  OnRun(hot, context, arguments, RunHot);
}

}  // namespace timecache::cli
