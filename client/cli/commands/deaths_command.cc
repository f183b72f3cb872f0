// deaths: what of a namespace dies when.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

constexpr uint64_t kDefaultDeathBars = 20;
constexpr uint64_t kMaxDeathBars = 1'000;
constexpr uint64_t kDeathsColumns = 40;

struct DeathsArguments {
  uint64_t bars = kDefaultDeathBars;
  std::optional<absl::Duration> within;
  bool bytes = false;
};

Json DeathsJson(const std::string& ns, const DeathsAhead& deaths) {
  Json bars = Json::array();
  for (const DeathBar& bar : deaths.bars) {
    bars.push_back({{"begin", ExactTimeText(bar.begin)},
                    {"end", ExactTimeText(bar.end)},
                    {"entries", bar.entries},
                    {"bytes", bar.bytes}});
  }
  return {{"namespace", ns},
          {"server_time", ExactTimeText(deaths.server_time)},
          {"bars", bars},
          {"later_entries", deaths.later_entries},
          {"later_bytes", deaths.later_bytes}};
}

// How far ahead a time is, to the millisecond.
std::string AheadText(absl::Time time, const DeathsAhead& deaths) {
  const absl::Duration ahead = time - deaths.server_time;
  return DurationText(std::max(absl::Trunc(ahead, absl::Milliseconds(1)),
                               absl::ZeroDuration()));
}

// The numbers in columns, and a bar beside each. What is there has a bar, too,
// where it is next to nothing.
std::string DeathsText(const DeathsAhead& deaths, bool bytes) {
  std::vector<Row> table = {{"UNTIL", "ENTRIES", "BYTES"}};
  std::vector<uint64_t> amounts = {0};
  const auto add = [&](const std::string& until, uint64_t entries,
                       uint64_t size) {
    table.push_back({until, CountText(entries), SizeText(size)});
    amounts.push_back(bytes ? size : entries);
  };
  for (const DeathBar& bar : deaths.bars) {
    add(absl::StrCat("+", AheadText(bar.end, deaths)), bar.entries, bar.bytes);
  }
  if (deaths.later_entries > 0) {
    add("later", deaths.later_entries, deaths.later_bytes);
  }
  if (amounts.size() == 1) return "nothing is there to die";
  const auto most =
      std::max(*std::max_element(amounts.begin(), amounts.end()), uint64_t{1});
  std::vector<std::string> lines =
      absl::StrSplit(Table(std::move(table)), '\n');
  std::string text;
  for (size_t i = 0; i < amounts.size(); ++i) {
    const auto columns =
        static_cast<size_t>(static_cast<double>(amounts[i]) /
                            static_cast<double>(most) * kDeathsColumns);
    absl::StrAppend(&text, i == 0 ? "" : "\n", lines[i]);
    if (amounts[i] > 0) {
      absl::StrAppend(&text, "  ",
                      std::string(std::max(columns, size_t{1}), '#'));
    }
  }
  return text;
}

int RunDeaths(const Context& context, const DeathsArguments& arguments) {
  const DeathsAhead deaths =
      context.MakeClient()
          .GetDeaths(context.ns(),
                     {.max_bars = static_cast<uint32_t>(arguments.bars),
                      .within = arguments.within})
          .value();
  return Print(context, DeathsJson(context.ns(), deaths),
               DeathsText(deaths, arguments.bytes));
}

}  // namespace

void AddDeathsCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DeathsArguments>();
  CLI::App* deaths =
      app.add_subcommand("deaths", "Show how much of a namespace dies when");
  AddCount(
      *deaths, "--bars",
      [arguments](uint64_t bars) {
        if (bars < 1 || bars > kMaxDeathBars) {
          throw CLI::ValidationError("--bars", "must be from 1 to 1000");
        }
        arguments->bars = bars;
      },
      "Most bars; each is a number of buckets (20)");
  AddDuration(*deaths, "--within", arguments->within,
              "Only what dies within this time has bars of its own");
  deaths->add_flag("--bytes", arguments->bytes,
                   "Draw the bytes of keys and values, not the entries");
  deaths->footer(
      "UNTIL is the time from now until the end of a bar. What is renewed, "
      "removed\n"
      "or put anew until then does not die.\n\n"
      "Examples:\n"
      "  timecachectl deaths -n sessions\n"
      "  timecachectl deaths -n sessions --within 10m --bars 10\n"
      "  timecachectl deaths -n sessions --json | jq '.bars[0].entries'");
  OnRun(deaths, context, arguments, RunDeaths);
}

}  // namespace timecache::cli
