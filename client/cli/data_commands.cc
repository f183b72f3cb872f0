// put, get, rm, contains, size, touch.
#include <unistd.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/flags.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cpp/status.h"

namespace timecache::cli {
namespace {

constexpr char kKeyHelp[] = "The key";

// The end of a command that did its work: prints, and returns `code`.
int Print(const Context& context, const Json& object, const std::string& text,
          int code) {
  const bool written = context.json ? WriteJson(object) : WriteLine(text);
  return written && Flush() ? code : context.FailToWrite();
}

// A key that is not there: text on standard error, so that scripts that take
// the value from standard output get none.
int Miss(const Context& context, const Json& object) {
  if (context.json) return Print(context, object, "", kExitNotFound);
  Warn("not found");
  return kExitNotFound;
}

// A condition that did not hold.
int Refused(const Context& context, const char* what,
            const absl::Status& status) {
  Json object = {{what, false}};
  if (const auto reason = ErrorReason(status)) object["reason"] = *reason;
  if (context.json) return Print(context, object, "", kExitNotFound);
  Warn(std::string(status.message()));
  return kExitNotFound;
}

Json Found(const Context& context, const Entry& entry) {
  Json object = {{"found", true}};
  object.update(ToJson(entry, context.encoding));
  return object;
}

struct PutArguments {
  std::string key;
  std::string value;
  PutOptions options;
};

int RunPut(const Context& context, const PutArguments& arguments) {
  const auto key = context.Key(arguments.key);
  if (!key.ok()) return context.Fail(key.status());
  const auto value = context.Value(arguments.value);
  if (!value.ok()) return context.Fail(value.status());
  const auto result = context.MakeClient().Put(*key, *value, arguments.options);
  if (absl::IsFailedPrecondition(result.status())) {
    return Refused(context, "stored", result.status());
  }
  if (!result.ok()) return context.Fail(result.status());
  Json object = {{"stored", true}, {"version", result->version}};
  std::string text = absl::StrCat("stored, version ", result->version);
  if (arguments.options.return_previous) {
    object["previous"] = nullptr;
    if (result->previous) {
      object["previous"] = ToJson(*result->previous, context.encoding);
      absl::StrAppend(&text, "\nprevious: ",
                      Encode(result->previous->value, context.encoding));
    }
  }
  return Print(context, object, text, kExitDone);
}

void AddPut(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PutArguments>();
  CLI::App* put = app.add_subcommand("put", "Store a value under a key");
  put->add_option("key", arguments->key, kKeyHelp)->required();
  put->add_option("value", arguments->value,
                  "The value; - takes it from standard input, as it is")
      ->required();
  PutOptions& options = arguments->options;
  AddDuration(
      *put, "--ttl", [&options](absl::Duration ttl) { options.ttl = ttl; },
      "The entry's own time to live; else the namespace's");
  auto* absent = put->add_flag_callback(
      "--if-absent",
      [&options] { options.condition = PutCondition::kIfAbsent; },
      "Only if the key is not there");
  auto* present = put->add_flag_callback(
      "--if-present",
      [&options] { options.condition = PutCondition::kIfPresent; },
      "Only if the key is there");
  auto* version = AddCount(
      *put, "--if-version",
      [&options](uint64_t version) { options.if_version = version; },
      "Only if the key is there with this version");
  absent->excludes(present)->excludes(version);
  present->excludes(version);
  put->add_flag("--previous", options.return_previous,
                "Show the entry that was replaced");
  put->footer(
      "Exits with 1 if the condition does not hold.\n\n"
      "Examples:\n"
      "  timecachectl put session:7 'basket=3' --ttl 30m\n"
      "  timecachectl put lock:job host-a --if-absent --ttl 10s\n"
      "  timecachectl put photo:1 - < photo.jpg\n"
      "  timecachectl put --hex 00ff cafe\n"
      "  timecachectl put temperature -- -5");
  put->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunPut(context, *arguments);
    };
  });
}

struct GetArguments {
  std::string key;
  GetOptions options;
  bool raw = false;
  bool all = false;
};

int PrintEntry(const Context& context, const GetArguments& arguments,
               const Entry& entry) {
  const bool as_is = context.encoding == Encoding::kText && !arguments.all &&
                     isatty(STDOUT_FILENO) != 1;
  bool written;
  if (context.json) {
    written = WriteJson(Found(context, entry));
  } else if (arguments.raw) {
    written = Write(entry.value);
  } else {
    written =
        WriteLine(as_is ? entry.value : Encode(entry.value, context.encoding));
  }
  if (arguments.all && !context.json) {
    written =
        WriteLine(absl::StrCat("version  ", entry.version, "\nput      ",
                               ExactTimeText(entry.put_time), "\ndeadline ",
                               ExactTimeText(entry.deadline)));
  }
  return written && Flush() ? kExitDone : context.FailToWrite();
}

int RunGet(const Context& context, const GetArguments& arguments) {
  const auto key = context.Key(arguments.key);
  if (!key.ok()) return context.Fail(key.status());
  const auto entry = context.MakeClient().Get(*key, arguments.options);
  if (!entry.ok()) return context.Fail(entry.status());
  if (*entry) return PrintEntry(context, arguments, **entry);
  Json miss = {{"found", false}};
  SetBytes(miss, "key", *key, context.encoding);
  return Miss(context, miss);
}

void AddGet(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* get = app.add_subcommand("get", "Show the value of a key");
  get->add_option("key", arguments->key, kKeyHelp)->required();
  get->add_flag("--touch", arguments->options.touch,
                "Renew the entry's time to live, too");
  auto* raw = get->add_flag("--raw", arguments->raw,
                            "The value's bytes and nothing else: no escapes, "
                            "no end of line");
  get->add_flag("-a,--all", arguments->all,
                "Show version, put time and deadline, too")
      ->excludes(raw);
  get->footer(
      "On a terminal, bytes that are not text are shown as \\x00 and a\n"
      "backslash as two. Exits with 1 if the key is not there.\n\n"
      "Examples:\n"
      "  timecachectl get session:7\n"
      "  timecachectl get photo:1 --raw > photo.jpg\n"
      "  timecachectl get session:7 --json | jq -r .deadline");
  get->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunGet(context, *arguments);
    };
  });
}

struct RemoveArguments {
  std::string key;
  RemoveOptions options;
};

int RunRemove(const Context& context, const RemoveArguments& arguments) {
  const auto key = context.Key(arguments.key);
  if (!key.ok()) return context.Fail(key.status());
  const auto result = context.MakeClient().Remove(*key, arguments.options);
  if (absl::IsFailedPrecondition(result.status())) {
    return Refused(context, "removed", result.status());
  }
  if (!result.ok()) return context.Fail(result.status());
  if (!result->removed) return Miss(context, {{"removed", false}});
  Json object = {{"removed", true}};
  std::string text = "removed";
  if (result->previous) {
    object["previous"] = ToJson(*result->previous, context.encoding);
    absl::StrAppend(&text, "\nprevious: ",
                    Encode(result->previous->value, context.encoding));
  }
  return Print(context, object, text, kExitDone);
}

void AddRemove(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RemoveArguments>();
  CLI::App* rm =
      app.add_subcommand("rm", "Remove a key, without an expiry event");
  rm->add_option("key", arguments->key, kKeyHelp)->required();
  AddCount(
      *rm, "--if-version",
      [arguments = arguments.get()](uint64_t version) {
        arguments->options.if_version = version;
      },
      "Only this version");
  rm->add_flag("--previous", arguments->options.return_previous,
               "Show the entry that was removed");
  rm->footer(
      "Exits with 1 if the key is not there.\n\n"
      "Examples:\n"
      "  timecachectl rm session:7\n"
      "  timecachectl rm lock:job --if-version 4711");
  rm->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunRemove(context, *arguments);
    };
  });
}

int RunContains(const Context& context, const std::string& argument) {
  const auto key = context.Key(argument);
  if (!key.ok()) return context.Fail(key.status());
  const auto contains = context.MakeClient().Contains(*key);
  if (!contains.ok()) return context.Fail(contains.status());
  return Print(context, {{"contains", *contains}}, *contains ? "yes" : "no",
               *contains ? kExitDone : kExitNotFound);
}

void AddContains(CLI::App& app, Context& context) {
  auto key = std::make_shared<std::string>();
  CLI::App* contains =
      app.add_subcommand("contains", "Tell whether a key is there");
  contains->add_option("key", *key, kKeyHelp)->required();
  contains->footer(
      "Exits with 1 if it is not.\n\n"
      "Example:\n"
      "  timecachectl contains session:7 && echo still here");
  contains->callback([&context, key] {
    context.command = [&context, key] { return RunContains(context, *key); };
  });
}

int RunSize(const Context& context) {
  const auto size = context.MakeClient().Size();
  if (!size.ok()) return context.Fail(size.status());
  return Print(context,
               {{"namespace", context.ns()},
                {"entries", size->entries},
                {"bytes", size->bytes}},
               absl::StrCat(CountText(size->entries), " entries, ",
                            SizeText(size->bytes)),
               kExitDone);
}

void AddSize(CLI::App& app, Context& context) {
  CLI::App* size = app.add_subcommand(
      "size", "Count a namespace's live entries and their bytes");
  size->footer(
      "Examples:\n"
      "  timecachectl size\n"
      "  timecachectl size -n sessions --json | jq .entries");
  size->callback([&context] {
    context.command = [&context] { return RunSize(context); };
  });
}

struct TouchArguments {
  std::string key;
  std::optional<absl::Duration> ttl;
};

int RunTouch(const Context& context, const TouchArguments& arguments) {
  const auto key = context.Key(arguments.key);
  if (!key.ok()) return context.Fail(key.status());
  const auto version = context.MakeClient().Touch(*key, arguments.ttl);
  if (!version.ok()) return context.Fail(version.status());
  if (!*version) return Miss(context, {{"touched", false}});
  return Print(context, {{"touched", true}, {"version", **version}},
               absl::StrCat("touched, version ", **version), kExitDone);
}

void AddTouch(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TouchArguments>();
  CLI::App* touch = app.add_subcommand(
      "touch", "Give an entry a fresh time to live, without a new value");
  touch->add_option("key", arguments->key, kKeyHelp)->required();
  AddDuration(
      *touch, "--ttl",
      [arguments = arguments.get()](absl::Duration ttl) {
        arguments->ttl = ttl;
      },
      "Its time to live from now on; else the one it was put with");
  touch->footer(
      "Exits with 1 if the key is not there.\n\n"
      "Examples:\n"
      "  timecachectl touch session:7\n"
      "  timecachectl touch session:7 --ttl 2h");
  touch->callback([&context, arguments] {
    context.command = [&context, arguments] {
      return RunTouch(context, *arguments);
    };
  });
}

}  // namespace

void AddDataCommands(CLI::App& app, Context& context) {
  AddPut(app, context);
  AddGet(app, context);
  AddRemove(app, context);
  AddContains(app, context);
  AddSize(app, context);
  AddTouch(app, context);
}

}  // namespace timecache::cli
