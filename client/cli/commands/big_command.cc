// big: the largest entries of a namespace.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

struct BigArguments {
  std::string prefix;
  uint64_t count = 20;
  // Entries to look at; 0: all.
  uint64_t sample = 100'000;
};

// Of the key and the value, or the parts in its place.
uint64_t BytesOf(const Entry& entry) {
  uint64_t bytes =
      entry.key.size() + entry.value.size() + entry.omitted_value_bytes;
  if (!entry.parts) return bytes;
  for (const GatheredPart& part : entry.parts->parts) {
    bytes += part.name.size() + part.value.size();
  }
  return bytes;
}

// The entries that were looked at, and the largest of them.
class Largest {
 public:
  explicit Largest(size_t most) : most_(most) {}

  void Add(const Entry& entry) {
    const uint64_t bytes = BytesOf(entry);
    ++entries_;
    bytes_ += bytes;
    if (heap_.size() == most_ && bytes <= heap_.front().first) return;
    heap_.emplace_back(bytes, entry.key);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    if (heap_.size() <= most_) return;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }

  // The largest one first.
  std::vector<std::pair<uint64_t, std::string>> Take() {
    std::sort_heap(heap_.begin(), heap_.end(), std::greater<>());
    return std::move(heap_);
  }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const size_t most_;
  uint64_t entries_ = 0;
  uint64_t bytes_ = 0;
  // The smallest one in front.
  std::vector<std::pair<uint64_t, std::string>> heap_;
};

int RunBig(const Context& context, const BigArguments& arguments) {
  ScanOptions options = {.key_prefix = context.Key(arguments.prefix).value()};
  if (context.timeout_given) options.timeout = context.timeout;
  Largest largest(arguments.count);
  bool all = true;
  const absl::Status status =
      context.MakeClient().Scan(options, [&](const Entry& entry) {
        all = arguments.sample == 0 || largest.entries() < arguments.sample;
        if (all) largest.Add(entry);
        return all;
      });
  if (!status.ok()) return context.Fail(status);
  Json keys = Json::array();
  std::vector<Row> table = {{"KEY", "BYTES"}};
  for (const auto& [bytes, key] : largest.Take()) {
    Json object = {{"bytes", bytes}};
    SetBytes(object, "key", key, context.encodings.key);
    keys.push_back(std::move(object));
    table.push_back({Encode(key, context.encodings.key), SizeText(bytes)});
  }
  const uint64_t mean =
      largest.bytes() / std::max(largest.entries(), uint64_t{1});
  return Print(
      context,
      {{"namespace", context.ns()},
       {"entries", largest.entries()},
       {"bytes", largest.bytes()},
       {"all", all},
       {"largest", std::move(keys)}},
      absl::StrCat(Table(std::move(table)), "\n", all ? "all " : "a sample of ",
                   CountText(largest.entries()), " entries, ", SizeText(mean),
                   " each on average"));
}

}  // namespace

void AddBigCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BigArguments>();
  CLI::App* big =
      app.add_subcommand("big", "Show the largest entries of a namespace");
  big->add_option("prefix,--prefix", arguments->prefix,
                  "Only keys that begin with this");
  big->add_option("--count", arguments->count, "How many to show (20)")
      ->check(AtLeastOne());
  AddCount(*big, "--sample", arguments->sample,
           "Look at so many entries; 0: all (100000)");
  big->footer(
      "Reads the values of a sample: the first entries of a scan, whose order "
      "is by\n"
      "a hash of the key, so that large ones are in it as often as others. An "
      "entry\n"
      "that takes a thousandth of the bytes may be missed; --sample 0 misses "
      "none.\n\n"
      "Examples:\n"
      "  timecachectl big -n sessions\n"
      "  timecachectl big user: --count 5 --sample 0\n"
      "  timecachectl big --json | jq -r '.largest[0].key'");
  OnRun(big, context, arguments, RunBig);
}

}  // namespace timecache::cli
