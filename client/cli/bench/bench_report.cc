#include "client/cli/bench/bench_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

constexpr std::pair<const char*, double> kPercentiles[] = {
    {"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99_9", 99.9}};

// To a tenth of a microsecond: the clock's own noise is no less.
double Microseconds(double ns) { return std::round(ns / 100) / 10; }

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? std::round(static_cast<double>(count) / seconds) : 0;
}

double CpuNsPerOperation(const BenchResult& result) {
  const uint64_t operations = result.tally.counts().results;
  if (operations == 0) return 0;
  return std::round(result.cpu_seconds * 1e10 /
                    static_cast<double>(operations)) /
         10;
}

std::string_view TransportOf(const BenchOptions& options) {
  if (options.callers > 0 && options.batch > 1) return "execute";
  if (options.callers > 0) return options.is_unary ? "unary" : "calls";
  if (!options.is_unary) return "pipeline";
  return options.batch > 1 ? "execute" : "unary";
}

Json MixToJson(const BenchOptions& options) {
  Json mix = Json::object();
  for (size_t k = 0; k < kBenchKinds; ++k) {
    if (options.mix_percent[k] == 0) continue;
    mix[std::string(kBenchKindNames[k])] = options.mix_percent[k];
  }
  return mix;
}

Json SettingsToJson(const BenchOptions& options) {
  Json settings = {{"namespace", options.ns},
                   {"mix_percent", MixToJson(options)},
                   {"keys", options.keys},
                   {"order", options.is_sequential ? "sequential" : "random"},
                   {"key_bytes", options.key_bytes},
                   {"value_bytes", options.value_bytes},
                   {"ttl_ms", nullptr},
                   {"transport", TransportOf(options)},
                   {"batch", options.batch},
                   {"connections", options.connections},
                   {"depth", options.depth},
                   {"callers", options.callers},
                   {"owner_routing", options.owner_routing},
                   {"rate", options.rate}};
  if (options.ttl) settings["ttl_ms"] = absl::ToInt64Milliseconds(*options.ttl);
  return settings;
}

std::string Plural(uint64_t count, const std::string& what) {
  return absl::StrCat(CountText(count), " ", what, count == 1 ? "" : "s");
}

std::string LatencyText(const LatencyHistogram& latencies) {
  const auto text = [](double ns) {
    return absl::StrFormat("%.*f us", ns < 1e5 ? 1 : 0, ns / 1e3);
  };
  std::vector<std::string> parts;
  for (const auto& [name, percent] : kPercentiles) {
    parts.push_back(absl::StrCat(
        absl::StrReplaceAll(name, {{"_", "."}}), " ",
        text(static_cast<double>(latencies.PercentileNs(percent)))));
  }
  parts.push_back(
      absl::StrCat("max ", text(static_cast<double>(latencies.max_ns()))));
  return absl::StrJoin(parts, ", ");
}

std::string CallersText(const BenchOptions& options) {
  const std::string how = options.batch > 1
                              ? absl::StrCat("each by Execute calls of ",
                                             Plural(options.batch, "operation"))
                          : options.is_unary ? "each by unary calls"
                                             : "whose calls share a stream";
  return absl::StrCat(Plural(options.callers, "caller"), " of one client, ",
                      how, options.owner_routing ? ", to the owners" : "");
}

std::string SettingsText(const BenchOptions& options) {
  std::vector<std::string> mix;
  for (size_t k = 0; k < kBenchKinds; ++k) {
    if (options.mix_percent[k] == 0) continue;
    mix.push_back(absl::StrFormat("%d %% %s", options.mix_percent[k],
                                  std::string(kBenchKindNames[k])));
  }
  const std::string how =
      options.callers > 0
          ? CallersText(options)
          : absl::StrCat(Plural(options.connections, "connection"), ", ",
                         Plural(options.depth, "message"),
                         " in flight on each, of ",
                         Plural(options.batch, "operation"), ", by ",
                         options.is_unary ? "unary calls" : "Pipeline");
  return absl::StrCat(
      absl::StrJoin(mix, ", "), "; ", Plural(options.keys, "key"), " of ",
      SizeText(options.key_bytes), ", ",
      options.is_sequential ? "in order" : "at random", "; values of ",
      SizeText(options.value_bytes), "\n", how, "\n");
}

}  // namespace

Json BenchToJson(const BenchOptions& options, const BenchResult& result) {
  const BenchTally& tally = result.tally;
  const BenchCounts& counts = tally.counts();
  const LatencyHistogram& latencies = tally.latencies();
  Json latency = {{"mean", Microseconds(latencies.mean_ns())}};
  for (const auto& [name, percent] : kPercentiles) {
    latency[name] =
        Microseconds(static_cast<double>(latencies.PercentileNs(percent)));
  }
  latency["max"] = Microseconds(static_cast<double>(latencies.max_ns()));
  Json errors = Json::object();
  for (const auto& [code, count] : tally.errors()) errors[code] = count;
  return {{"operations", counts.results},
          {"messages", latencies.count()},
          {"elapsed_seconds", tally.seconds()},
          {"operations_per_second", PerSecond(counts.results, tally.seconds())},
          {"hits", counts.hits},
          {"misses", counts.misses},
          {"errors", errors},
          {"latency_us", latency},
          {"messages_not_sent", result.messages_not_sent},
          {"client_cpu_seconds", result.cpu_seconds},
          {"client_cpu_ns_per_operation", CpuNsPerOperation(result)},
          {"complete", result.complete},
          {"interrupted", result.interrupted},
          {"settings", SettingsToJson(options)}};
}

std::string BenchToText(const BenchOptions& options,
                        const BenchResult& result) {
  const BenchTally& tally = result.tally;
  const BenchCounts& counts = tally.counts();
  std::vector<std::string> errors;
  for (const auto& [code, count] : tally.errors()) {
    errors.push_back(absl::StrCat(CountText(count), " ", code));
  }
  const auto rate =
      static_cast<uint64_t>(PerSecond(counts.results, tally.seconds()));
  std::string text = absl::StrCat(
      SettingsText(options), "namespace    ", options.ns, "\noperations   ",
      CountText(counts.results), " in ",
      absl::StrFormat("%.2f s", tally.seconds()), ": ", CountText(rate), "/s",
      result.interrupted ? " (interrupted)" : "", "\n");
  if (counts.hits + counts.misses > 0) {
    absl::StrAppend(&text, "found        ", CountText(counts.hits), " of ",
                    CountText(counts.hits + counts.misses), "\n");
  }
  absl::StrAppend(&text, "errors       ",
                  errors.empty() ? "none" : absl::StrJoin(errors, ", "), "\n");
  absl::StrAppend(&text, "latency      ", LatencyText(tally.latencies()),
                  ", of ", Plural(tally.latencies().count(), "message"), "\n");
  if (options.rate > 0) {
    absl::StrAppend(&text, "not sent     ", CountText(result.messages_not_sent),
                    " messages were due and found no room\n");
  }
  absl::StrAppend(
      &text, "client CPU   ", absl::StrFormat("%.2f s", result.cpu_seconds),
      absl::StrFormat(", %.1f ns an operation", CpuNsPerOperation(result)));
  return text;
}

}  // namespace timecache::cli
