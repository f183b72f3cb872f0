// timecachectl: a timecached server from the command line. This file only wires
// the commands together.
#include <csignal>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "client/cli/address.h"
#include "client/cli/commands/commands.h"
#include "client/cli/contexts.h"
#include "client/cli/flags.h"
#include "client/cli/ui/suggest.h"
#include "grpc/support/log.h"

namespace timecache::cli {
namespace {

// The variable that stands for the flag; for the lines of a shell it has been
// read.
CLI::Option* WithEnvironment(CLI::Option* option, const Context& context,
                             const char* variable) {
  return context.in_shell ? option : option->envname(variable);
}

void AddConnectionFlags(CLI::App& app, Context& context) {
  ChannelOptions& channel = context.channel;
  const auto add = [&app, &context](const char* name, std::string& value,
                                    const char* environment, const char* type,
                                    const char* help) {
    WithEnvironment(app.add_option(name, value, help), context, environment)
        ->type_name(type);
  };
  WithEnvironment(app.add_flag("--tls", channel.tls,
                               "Use TLS; implied by the four flags below"),
                  context, "TIMECACHED_TLS");
  add("--ca", channel.ca_file, "TIMECACHED_CA", "FILE",
      "Roots of the server's certificate, PEM (the system's)");
  add("--cert", channel.certificate_file, "TIMECACHED_CERT", "FILE",
      "The client's certificate, PEM, for mutual TLS");
  add("--key", channel.key_file, "TIMECACHED_KEY", "FILE",
      "Its private key, PEM");
  add("--server-name", channel.server_name, "TIMECACHED_SERVER_NAME", "NAME",
      "The name in the server's certificate (the host of --address)");
  add("--token-file", channel.token_file, "TIMECACHED_TOKEN_FILE", "FILE",
      "Send the bearer token in this file to the server");
  WithEnvironment(
      app.add_flag("--allow-plaintext-token", channel.allow_plaintext_token,
                   "Send it to other machines without TLS, too"),
      context, "TIMECACHED_ALLOW_PLAINTEXT_TOKEN");
}

void AddEncodingFlags(CLI::App& app, const std::string& hex_name,
                      const std::string& base64_name, const std::string& what,
                      Encoding& encoding) {
  auto* hex = app.add_flag_callback(
      hex_name, [&encoding] { encoding = Encoding::kHex; },
      "Take and show " + what + " as hex");
  app.add_flag_callback(
         base64_name, [&encoding] { encoding = Encoding::kBase64; },
         "Take and show " + what + " as base64")
      ->excludes(hex);
}

void AddGlobalFlags(CLI::App& app, Context& context) {
  WithEnvironment(
      app.add_option("--address", context.address,
                     "The server: HOST, HOST:PORT, [::1]:PORT or unix:/PATH; "
                     "of a cluster the nodes, separated by commas"),
      context, "TIMECACHED_ADDRESS")
      ->capture_default_str()
      ->transform(CLI::Validator(
          [](std::string& address) {
            const auto complete = CompleteAddress(address);
            if (!complete.ok()) return std::string(complete.status().message());
            address = *complete;
            return std::string();
          },
          ""));
  WithEnvironment(
      app.add_option("--context", context.name,
                     "The context: a server of `contexts list` "
                     "(the current one, unless --address is given)"),
      context, "TIMECACHED_CONTEXT")
      ->type_name("NAME");
  WithEnvironment(app.add_option("-n,--namespace", context.namespaces,
                                 "The namespace; watch takes several"),
                  context, "TIMECACHED_NAMESPACE")
      ->allow_extra_args(false)
      ->capture_default_str();
  AddConnectionFlags(app, context);
  AddDuration(
      app, "--timeout",
      [&context](absl::Duration timeout) {
        context.timeout = timeout;
        context.timeout_given = true;
      },
      "Longest duration of a call (5s)");
  auto* json = app.add_flag("--json", context.json,
                            "The same as --output json: an object, or, of "
                            "watch, scan and several keys, one a line");
  app.add_option_function<std::string>(
         "-o,--output",
         [&context](const std::string& form) { context.json = form == "json"; },
         "table for people, json for programs (table)")
      ->check(CLI::IsMember({"table", "json"}))
      ->excludes(json);
  AddEncodingFlags(app, "--hex", "--base64", "values", context.encodings.value);
  AddEncodingFlags(app, "--key-hex", "--key-base64", "keys",
                   context.encodings.key);
}

// CLI11's exit codes are its own; ours are 0 for help and 2 for wrong usage.
int Usage(const CLI::App& app, const CLI::ParseError& error,
          const std::vector<std::string>& words) {
  const bool is_help = error.get_exit_code() == 0;
  const auto unknown = is_help ? std::nullopt : ExplainUnknownWord(app, words);
  if (unknown) {
    Warn(*unknown);
    return kExitError;
  }
  return app.exit(error) == 0 ? kExitDone : kExitError;
}

constexpr char kAbout[] =
    "The command line of timecached, the key-value server whose entries expire "
    "on schedule.";

void Build(CLI::App& app, Context& context) {
  app.fallthrough();
  app.require_subcommand(1);
  app.set_version_flag("--version", "timecachectl " TIMECACHED_VERSION);
  app.footer(
      R"(Exit codes: 0 found or done; 1 not found, or a condition does not hold; 2 error;
130 interrupted. Durations are written 500ms, 30s, 5m, 24h, 7d; sizes 64MiB.
The default port is 7171.

Examples:
  timecachectl put session:7 'basket=3' --ttl 30m
  timecachectl get session:7
  timecachectl --address cache:7171 --ca ca.crt --cert me.crt --key me.key watch
  timecachectl --address cache:7171 --tls --token-file token get a
  timecachectl watch)");
  AddGlobalFlags(app, context);
  AddDataCommands(app, context);
  AddScanCommand(app, context);
  AddDumpCommand(app, context);
  AddWatchCommand(app, context);
  AddFetchCommand(app, context);
  AddLoadCommand(app, context);
  AddBenchCommand(app, context);
  AddHealthCommand(app, context);
  AddStatusCommands(app, context);
  AddTokenCommand(app, context);
  AddNamespaceCommands(app, context);
  AddOperatorCommands(app, context);
  AddContextsCommands(app, context);
  AddInteractiveCommand(app, context);
  AddBigCommand(app, context);
  AddDeathsCommand(app, context);
  AddHotCommand(app, context);
  AddDeadCommands(app, context);
  AddBackupCommand(app, context);
  AddJournalCommand(app, context);
  AddClusterCommands(app, context);
  AddClockCommands(app, context);
  AddConsoleCommand(app, context);
  AddCompletionCommand(app, context);
  AddHelpCommands(app, context);
}

// What calls none also runs with a file of contexts that cannot be read.
bool MayCallServer(const CLI::App& app) {
  for (const char* command :
       {"contexts", "help", "version", "completion", "token", "journal"}) {
    if (app.got_subcommand(command)) return false;
  }
  return true;
}

int ParseAndRun(CLI::App& app, const std::vector<std::string>& words,
                Context& context) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    context.namespace_given = app.count("--namespace") > 0;
    if (context.namespaces.size() != 1 && !app.got_subcommand("watch")) {
      throw CLI::ValidationError("--namespace",
                                 "give one; only watch takes several");
    }
  } catch (const CLI::ParseError& error) {
    return Usage(app, error, words);
  }
  absl::Status status;
  if (MayCallServer(app)) status = ApplyContext(app, context);
  return status.ok() ? context.command() : context.Fail(status);
}

int RunWords(const std::vector<std::string>& words, Context context) {
  CLI::App app(kAbout, "timecachectl");
  Build(app, context);
  return ParseAndRun(app, words, context);
}

constexpr Program kProgram = {Build, RunWords};

int Main(int argc, char** argv) {
  // As the server does: `bench` is to measure that, and not a client that
  // checks the order of its locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // A reader that leaves is an error of the write, not a death.
  std::signal(SIGPIPE, SIG_IGN);
  // What matters of gRPC's own words is in a call's error.
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  Context context;
  context.program = &kProgram;
  CLI::App app(kAbout, "timecachectl");
  Build(app, context);
  if (const auto exit_code = RunHiddenCommand(app, context, argc, argv)) {
    return *exit_code;
  }
  return ParseAndRun(app, std::vector<std::string>(argv + 1, argv + argc),
                     context);
}

}  // namespace
}  // namespace timecache::cli

int main(int argc, char** argv) { return timecache::cli::Main(argc, argv); }
