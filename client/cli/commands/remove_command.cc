// rm.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/many_operations.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/progress.h"

namespace timecache::cli {
namespace {

struct RemoveArguments {
  std::vector<std::string> keys;
  std::optional<std::string> prefix;
  RemoveOptions options;
  bool yes = false;
};

std::string PreviousText(const Context& context,
                         const std::optional<Entry>& previous) {
  if (!previous) return "";
  return absl::StrCat("\nprevious: ",
                      ValueText(*previous, context.encodings.value));
}

int RemoveOne(const Context& context, const RemoveArguments& arguments) {
  const auto key = context.Key(arguments.keys[0]).value();
  const auto result = context.MakeClient().Remove(key, arguments.options);
  if (!result.ok()) return Refused(context, "removed", result.status());
  if (!result->removed) return Miss(context, {{"removed", false}});
  Json object = {{"removed", true}};
  if (result->previous) {
    object["previous"] = ToJson(*result->previous, context.encodings);
  }
  return Print(
      context, object,
      absl::StrCat("removed", PreviousText(context, result->previous)));
}

// The line of one of several keys; false if it cannot be written.
bool PrintRemoved(const Context& context, const std::string& key,
                  OperationResult& result) {
  if (result.entry) result.entry->key = key;
  if (context.json) {
    Json object;
    SetBytes(object, "key", key, context.encodings.key);
    object["removed"] = result.found;
    if (result.entry) {
      object["previous"] = ToJson(*result.entry, context.encodings);
    }
    return WriteJson(object);
  }
  if (result.found) {
    return WriteLine(absl::StrCat("removed ",
                                  Encode(key, context.encodings.key),
                                  PreviousText(context, result.entry)));
  }
  Warn(absl::StrCat("not found: ", key));
  return true;
}

int RemoveKeys(const Context& context, const RemoveArguments& arguments) {
  std::vector<std::string> keys;
  for (const std::string& argument : arguments.keys) {
    keys.push_back(context.Key(argument).value());
  }
  bool missed = false;
  bool written = true;
  const Client client = context.MakeClient();
  ManyOperations removes(client, [&](size_t i, OperationResult& result) {
    if (!result.status.ok()) return result.status;
    missed = missed || !result.found;
    written = PrintRemoved(context, keys[i], result);
    return written ? absl::OkStatus() : absl::CancelledError();
  });
  absl::Status status;
  for (size_t i = 0; status.ok() && i < keys.size(); ++i) {
    status = removes.Add(Operation::Remove(keys[i], arguments.options));
  }
  if (status.ok()) status = removes.Finish();
  if (!written || !Flush()) return context.FailToWrite();
  if (!status.ok()) return context.Fail(status);
  return missed ? kExitNotFound : kExitDone;
}

bool MayRemove(const Context& context, const RemoveArguments& arguments) {
  if (arguments.yes || !IsInteractive()) return true;
  return Ask(
      arguments.prefix->empty()
          ? absl::StrCat("remove all entries of namespace ", context.ns(), "?")
          : absl::StrCat("remove all entries of namespace ", context.ns(),
                         " whose key begins with ", *arguments.prefix, "?"));
}

// What a scan finds is removed while the scan goes on.
int RemovePrefix(const Context& context, const RemoveArguments& arguments) {
  std::string prefix = context.Key(*arguments.prefix).value();
  if (!MayRemove(context, arguments)) {
    Warn("nothing was removed");
    return kExitError;
  }
  ScanOptions options = {.key_prefix = std::move(prefix), .keys_only = true};
  if (context.timeout_given) options.timeout = context.timeout;
  const Client client = context.MakeClient();
  uint64_t removed = 0;
  ProgressBar bar;
  const absl::Time started_at = absl::Now();
  ManyOperations removes(client, [&](size_t, OperationResult& result) {
    removed += result.status.ok() && result.found;
    return result.status;
  });
  absl::Status failure;
  const absl::Status scanned = client.Scan(options, [&](const Entry& entry) {
    failure = removes.Add(Operation::Remove(entry.key));
    bar.Update({.done = removed, .elapsed = absl::Now() - started_at});
    return failure.ok();
  });
  // Also where the scan has failed.
  failure = removes.Finish();
  if (failure.ok()) failure = scanned;
  bar.Wipe();
  const int exit_code =
      Print(context, {{"removed", removed}, {"complete", failure.ok()}},
            absl::StrCat("removed ", CountText(removed),
                         failure.ok() ? "" : ", then gave up"),
            removed > 0 ? kExitDone : kExitNotFound);
  return failure.ok() ? exit_code : context.Fail(failure);
}

int Run(const Context& context, const RemoveArguments& arguments) {
  if (arguments.prefix) return RemovePrefix(context, arguments);
  if (arguments.keys.size() == 1) return RemoveOne(context, arguments);
  return RemoveKeys(context, arguments);
}

// What no single flag can say of itself.
void CheckRemoval(const RemoveArguments& arguments) {
  if (arguments.prefix.has_value() == !arguments.keys.empty()) {
    throw CLI::ValidationError("rm", "give keys, or --prefix");
  }
  if (arguments.prefix && arguments.options.return_previous) {
    throw CLI::ValidationError("--previous", "is for keys, not for --prefix");
  }
  if (arguments.options.if_version && arguments.keys.size() != 1) {
    throw CLI::ValidationError("--if-version", "is for one key");
  }
}

}  // namespace

void AddRemoveCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RemoveArguments>();
  CLI::App* rm = app.add_subcommand("rm", "Remove keys, without expiry events");
  rm->add_option("key", arguments->keys, "The keys, one or more");
  rm->add_option_function<std::string>(
      "--prefix",
      [arguments = arguments.get()](const std::string& prefix) {
        arguments->prefix = prefix;
      },
      "Remove all keys that begin with this; '': all keys");
  rm->add_flag("-y,--yes", arguments->yes,
               "Do not ask; only a terminal is asked, and only with --prefix");
  AddCount(*rm, "--if-version", arguments->options.if_version,
           "Only this version of the key");
  rm->add_flag("--previous", arguments->options.return_previous,
               "Show the entries that were removed");
  rm->footer(
      "Exits with 1 if a key does not exist, or none begins with the prefix.\n"
      "Entries that are put while --prefix runs may stay.\n\n"
      "Examples:\n"
      "  timecachectl rm session:7\n"
      "  timecachectl rm session:7 session:8\n"
      "  timecachectl rm --prefix session:\n"
      "  timecachectl rm lock:job --if-version 4711");
  OnRun(rm, context, arguments, Run, CheckRemoval);
}

}  // namespace timecache::cli
