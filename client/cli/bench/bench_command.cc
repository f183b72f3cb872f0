// bench: how fast the server is.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/bench/bench_callers.h"
#include "client/cli/bench/bench_report.h"
#include "client/cli/bench/bench_run.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/output_file.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/progress.h"
#include "timecache/operation.h"

namespace timecache::cli {
namespace {

constexpr int kExitOperationFailed = 1;
// With --operations and without --seconds, a run ends after this all the same.
constexpr absl::Duration kMaxDuration = absl::Hours(24);
constexpr uint64_t kMaxKeys = 1'000'000'000'000;
constexpr size_t kMinKeyBytes = 8;
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kMaxValueBytes = 16 << 20;
constexpr size_t kMaxConnections = 1024;
constexpr size_t kMaxDepth = 1024;
constexpr size_t kMaxCallers = 1024;
constexpr double kMaxRate = 1e9;

// "put=80,get=20"
std::array<int, kBenchKinds> ParseMix(const std::string& text) {
  std::array<int, kBenchKinds> mix = {};
  int sum = 0;
  for (const auto part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> share = absl::StrSplit(part, '=');
    const auto name =
        std::ranges::find(kBenchKindNames, std::string_view(share.first));
    int percent = 0;
    if (name == std::end(kBenchKindNames) ||
        !absl::SimpleAtoi(share.second, &percent) || percent < 0 ||
        percent > 100) {
      throw CLI::ValidationError(
          "--mix", absl::StrCat("\"", part,
                                "\" is not KIND=PERCENT with put, get, remove, "
                                "contains, touch, append, combine or gather"));
    }
    mix[name - std::begin(kBenchKindNames)] += percent;
    sum += percent;
  }
  if (sum != 100) {
    throw CLI::ValidationError(
        "--mix", absl::StrCat("adds up to ", sum, ", and must to 100"));
  }
  return mix;
}

// What no single flag can say of itself.
void CheckTogether(const BenchOptions& options) {
  uint64_t numbers = 1;
  for (size_t i = 0; i < options.key_digits(); ++i) numbers *= 10;
  if (options.keys > numbers) {
    throw CLI::ValidationError(
        "--keys", absl::StrCat("keys of ", options.key_bytes,
                               " bytes distinguish no more than ", numbers,
                               " apart: give more --key-bytes"));
  }
  const uint64_t message_bytes =
      uint64_t{options.batch} * (options.key_bytes + options.value_bytes + 32);
  if (options.batch > 1 && message_bytes > kMaxRequestBytes) {
    throw CLI::ValidationError(
        "--batch", absl::StrCat(options.batch, " operations with values of ",
                                SizeText(options.value_bytes),
                                " do not fit into a request of ",
                                SizeText(kMaxRequestBytes), ": give fewer"));
  }
  if (BenchMessages::BytesOfAll(options) > kMaxBenchMessageBytes) {
    throw CLI::ValidationError(
        "--connections",
        absl::StrCat("the messages of all connections take more than ",
                     SizeText(kMaxBenchMessageBytes),
                     ": give fewer --connections, or less --depth or --batch"));
  }
}

template <typename Run>
int Report(const Context& context, const BenchOptions& options, const Run& run,
           const absl::Status& status) {
  const BenchTally& tally = run.tally();
  const BenchResult result = {
      .tally = tally,
      .cpu_seconds = run.cpu_seconds(),
      .messages_not_sent = run.messages_not_sent(),
      .interrupted = run.was_interrupted(),
      .complete = status.ok() && tally.first_error().ok()};
  // A run that did not begin has no results.
  if (status.ok() || tally.counts().results > 0) {
    const bool written = context.json ? WriteJson(BenchToJson(options, result))
                                      : WriteLine(BenchToText(options, result));
    if (!written || !Flush()) return context.FailToWrite();
  }
  if (!status.ok()) return context.Fail(status);
  if (tally.timeline_error() != 0) {
    return context.Fail(
        absl::ErrnoToStatus(tally.timeline_error(), options.timeline));
  }
  if (tally.first_error().ok()) return kExitDone;
  context.Fail(tally.first_error());
  return kExitOperationFailed;
}

constexpr size_t kDefaultBatch = 100;

// Puts every key once, unmeasured.
BenchOptions FillOptions(const BenchOptions& options) {
  constexpr size_t kBatchBytes = 1 << 20;
  constexpr size_t kMaxBatch = 100;
  BenchOptions fill = options;
  fill.mix_percent = {100};
  fill.is_sequential = true;
  fill.batch =
      std::clamp(kBatchBytes / (options.key_bytes + options.value_bytes + 1),
                 size_t{1}, kMaxBatch);
  fill.is_unary = fill.batch == 1;
  fill.callers = 0;
  fill.connections = 1;
  fill.depth = 1;
  fill.rate = 0;
  fill.duration = kMaxDuration;
  fill.operations = options.keys;
  return fill;
}

// The exit code if the benchmark has thereby come to its end.
std::optional<int> Fill(const Context& context, const BenchOptions& options) {
  const BenchOptions fill = FillOptions(options);
  BenchRun run(fill, nullptr, [](const BenchTally&) {});
  const InterruptHandler interrupt([&run] { run.Interrupt(); });
  absl::Status status = run.Run();
  if (status.ok()) status = run.tally().first_error();
  if (!status.ok()) return context.Fail(status);
  if (!run.was_interrupted()) return std::nullopt;
  Warn("interrupted before anything was measured");
  return kExitInterrupted + interrupt.signal();
}

template <typename Run>
int Measure(const Context& context, const BenchOptions& options) {
  std::optional<OutputFile> timeline;
  if (!options.timeline.empty()) {
    timeline.emplace(
        OutputFile::Open(options.timeline, OutputFile::Replace::kInPlace)
            .value());
  }
  if (options.fill) {
    if (const auto exit_code = Fill(context, options)) return *exit_code;
  }
  ProgressBar bar;
  const absl::Time started_at = absl::Now();
  Run run(options, timeline ? timeline->stream() : nullptr,
          [&](const BenchTally& tally) {
            if (!bar.shown()) return;
            const absl::Duration elapsed = absl::Now() - started_at;
            const uint64_t done = tally.counts().results;
            // The part that is done: of the operations, or of the time.
            Progress progress = {.done = done,
                                 .bytes_read = done,
                                 .bytes_all = options.operations,
                                 .elapsed = elapsed,
                                 .unit = "operations"};
            if (options.operations == 0) {
              progress.bytes_read = absl::ToInt64Milliseconds(elapsed);
              progress.bytes_all = absl::ToInt64Milliseconds(options.duration);
            }
            bar.Update(progress);
          });
  InterruptHandler interrupt([&run] { run.Interrupt(); });
  const absl::Status status = run.Run();
  bar.Wipe();
  return Report(context, options, run, status);
}

// What is put before a measurement is there until its end.
constexpr absl::Duration kFilledTtl = absl::Hours(1);
// The server's default for the largest value.
constexpr size_t kDefaultMaxValueBytes = 1 << 20;

std::string UniqueName() {
  std::random_device random;
  return absl::StrFormat("bench-%08x%08x", random(), random());
}

NamespaceOptions OptionsFor(const BenchOptions& bench) {
  NamespaceOptions options;
  if (bench.ttl) {
    options.ttl = *bench.ttl;
  } else if (bench.fill) {
    options.ttl = kFilledTtl;
  }
  if (bench.value_bytes > kDefaultMaxValueBytes) {
    options.max_value_bytes = static_cast<uint32_t>(bench.value_bytes);
  }
  return options;
}

// The namespace that a benchmark makes for itself, so that it neither fills nor
// finds what others work with. The destructor deletes it with all that is in it.
class BenchNamespace {
 public:
  // `context` must outlive it. Throws why it cannot be made, and what to do.
  BenchNamespace(const Context& context, const BenchOptions& options)
      : context_(context), client_(context.MakeClient()), name_(UniqueName()) {
    absl::Status made =
        client_.CreateNamespace(name_, OptionsFor(options)).status();
    if (absl::IsPermissionDenied(made) || absl::IsResourceExhausted(made)) {
      made = absl::Status(
          made.code(),
          absl::StrCat("bench cannot create a namespace of its own (",
                       made.message(),
                       "): name one that it may fill with --namespace"));
    }
    if (!made.ok()) throw absl::BadStatusOrAccess(made);
  }
  // Says so where it cannot be deleted.
  ~BenchNamespace() {
    const absl::Status deleted = client_.DeleteNamespace(name_);
    if (deleted.ok() || absl::IsNotFound(deleted)) return;
    Warn(absl::StrCat("the benchmark's namespace still exists (",
                      context_.Explain(deleted),
                      "); delete it with: timecachectl ns delete ", name_));
  }
  BenchNamespace(const BenchNamespace&) = delete;
  BenchNamespace& operator=(const BenchNamespace&) = delete;

  // Unique.
  const std::string& name() const { return name_; }

 private:
  const Context& context_;
  const Client client_;
  const std::string name_;
};

// The node of several that is measured: the owner, which any call finds.
std::string MeasuredAddress(const Context& context) {
  if (!absl::StrContains(context.address, ',')) return context.address;
  const Client client = context.MakeClient();
  client.Size().IgnoreError();
  return client.address();
}

int RunBench(const Context& context, BenchOptions options) {
  options.channel = context.channel;
  options.ns = context.ns();
  options.timeout = context.timeout;
  // Before gRPC has threads that could take the signals.
  InterruptHandler::Hold();
  std::optional<BenchNamespace> own;
  if (!context.namespace_given) {
    own.emplace(context, options);
    options.ns = own->name();
  }
  options.address = MeasuredAddress(context);
  return options.callers > 0 ? Measure<BenchCallers>(context, options)
                             : Measure<BenchRun>(context, options);
}

constexpr char kFooter[] =
    R"(A message of one operation is a unary call of its own; one of more goes through
Pipeline, or, with --unary, is an Execute call. --callers measures what a program
does instead: so many threads, each with one plain call after the other, of one
client, whose calls share a stream or, with --unary, are RPCs, or with --batch are
Execute calls. Latency is of a message: from its
sending to its answer; with --rate, from when it was due, so that the
latency of messages delayed by a server stall counts. --rate keeps one core
busy.

Without --namespace, also where TIMECACHED_NAMESPACE is set, it creates a
namespace of its own, with the server's default options, and deletes it at the
end. Gets only find keys that were put before: --fill puts all keys first,
unmeasured; in a namespace of its own they then live for 1h.

Exit codes: 0 done; 1 an operation was answered with an error, which ends the run;
2 the server could not be reached or went away, or wrong usage.

Examples:
  timecachectl bench --mix put=100 --batch 100 --seconds 5
  timecachectl bench --fill --mix get=100 --batch 1 --connections 50
  timecachectl bench -n sessions --mix get=100 --keys 1000
  timecachectl bench --callers 16 --seconds 5
  timecachectl bench --callers 16 --batch 100 --owner-routing
  timecachectl bench --rate 100000 --batch 10 --connections 4 --timeline t.jsonl)";

void AddLoadFlags(CLI::App& bench, BenchOptions& options) {
  bench
      .add_option_function<std::string>(
          "--mix",
          [&options](const std::string& text) {
            options.mix_percent = ParseMix(text);
          },
          "Per cent of each kind: put, get, remove, contains, touch, append, "
          "combine (add 1), gather (of 3 parts) (put=80,get=20)")
      ->type_name("KIND=PERCENT,...");
  bench.add_option("--keys", options.keys, "Distinct keys (1000000)")
      ->check(CLI::Range(uint64_t{1}, kMaxKeys));
  bench
      .add_option_function<std::string>(
          "--order",
          [&options](const std::string& order) {
            options.is_sequential = order == "sequential";
          },
          "Of the keys: random or sequential (random)")
      ->check(CLI::IsMember({"random", "sequential"}));
  bench.add_option("--key-bytes", options.key_bytes, "Length of a key (16)")
      ->check(CLI::Range(kMinKeyBytes, kMaxKeyBytes));
  bench
      .add_option("--value-bytes", options.value_bytes,
                  "Length of a value (64)")
      ->check(CLI::Range(size_t{0}, kMaxValueBytes));
  bench.add_flag("--fill", options.fill, "Put all keys first, unmeasured");
  AddDuration(bench, "--ttl", options.ttl,
              "Time to live of what is put or touched; else the namespace's");
}

void AddPaceFlags(CLI::App& bench, BenchOptions& options) {
  CLI::Option* callers =
      bench
          .add_option("--callers", options.callers,
                      "Threads that make plain calls of one client")
          ->check(CLI::Range(size_t{1}, kMaxCallers));
  bench
      .add_flag("--owner-routing", options.owner_routing,
                "The callers' client sends each call to the node that owns the "
                "key, of nodes that share the ownership")
      ->needs(callers);
  bench
      .add_option("--batch", options.batch,
                  "Operations of a message (100), or of a caller's call (1)")
      ->check(CLI::Range(size_t{1}, kMaxRequestOperations));
  bench.add_flag("--unary", options.is_unary,
                 "Send messages as Execute calls instead of by Pipeline, and "
                 "plain calls as RPCs");
  bench
      .add_option("--connections", options.connections,
                  "Connections, each of its own (1)")
      ->check(CLI::Range(size_t{1}, kMaxConnections))
      ->excludes(callers);
  bench
      .add_option("--depth", options.depth,
                  "Messages in flight on each connection (1)")
      ->check(CLI::Range(size_t{1}, kMaxDepth))
      ->excludes(callers);
  bench
      .add_option("--rate", options.rate,
                  "Operations per second, whatever the answers do; else as "
                  "fast as they come")
      ->check(CLI::Range(1.0, kMaxRate))
      ->type_name("OPS")
      ->excludes(callers);
  auto* seconds =
      bench
          .add_option_function<double>(
              "--seconds",
              [&options](double seconds) {
                options.duration = absl::Seconds(seconds);
              },
              "How long (10)")
          ->check(CLI::Range(0.001, absl::ToDoubleSeconds(kMaxDuration)))
          ->type_name("S");
  bench
      .add_option("--operations", options.operations,
                  "How many, in whole messages")
      ->check(CLI::Range(uint64_t{1}, UINT64_MAX))
      ->excludes(seconds)
      ->type_name("N");
  bench
      .add_option("--timeline", options.timeline,
                  "Write a JSON line for each second: operations, latencies")
      ->type_name("FILE");
}

}  // namespace

void AddBenchCommand(CLI::App& app, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  options->batch = 0;  // Not given.
  CLI::App* bench = app.add_subcommand(
      "bench", "Put a server under load, and measure its speed");
  AddLoadFlags(*bench, *options);
  AddPaceFlags(*bench, *options);
  bench->footer(kFooter);
  // What is exported for other commands is not for a benchmark to fill.
  bench->preparse_callback(
      [&app](size_t) { app.get_option("--namespace")->envname(""); });
  OnRun(bench, context, options, RunBench, [](BenchOptions& given) {
    if (given.batch == 0) given.batch = given.callers > 0 ? 1 : kDefaultBatch;
    if (given.batch == 1 && given.callers == 0) given.is_unary = true;
    if (given.operations > 0) given.duration = kMaxDuration;
    CheckTogether(given);
  });
}

}  // namespace timecache::cli
