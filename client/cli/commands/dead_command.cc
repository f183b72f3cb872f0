// dead list, show, return, drop.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/dead_letters.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/progress.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

struct DeadArguments {
  std::vector<std::string> keys;
  DeadLetterFilter filter;
  bool all = false;
  bool yes = false;
  PutBackOptions put_back;
};

void WarnOfOthers(const Context& context, const DeadLetterWalk& walk) {
  if (walk.others > 0) {
    Warn(absl::StrCat(CountText(walk.others), " entries of namespace ",
                      context.ns(), " are no dead letters"));
  } else if (walk.letters == 0 && !context.namespace_given) {
    Warn(absl::StrCat("no dead letters in namespace ", context.ns(),
                      ": name the namespace that they go to with -n"));
  }
}

int RunListLetters(const Context& context, const DeadArguments& arguments) {
  bool written = true;
  DeadLetterWalk walk;
  const absl::Status status = VisitDeadLetters(
      context, context.MakeClient(), arguments.filter,
      [&](const Entry& entry, const DeadLetter& letter) {
        written = context.json
                      ? WriteJson(ToJson(entry, letter, context.encodings))
                      : WriteLine(LineText(entry, letter, context.encodings));
        return written;
      },
      &walk);
  if (!written || !Flush()) return context.FailToWrite();
  if (!status.ok()) return context.Fail(status);
  WarnOfOthers(context, walk);
  return kExitDone;
}

// The entry of the key, if there is one, and what it says.
absl::StatusOr<std::optional<std::pair<Entry, DeadLetter>>> Read(
    const Client& client, const std::string& key) {
  auto entry = client.Get(key);
  if (!entry.ok()) return entry.status();
  if (!*entry) return std::nullopt;
  auto letter = DecodeDeadLetter(**entry);
  if (!letter.ok()) return letter.status();
  return std::make_pair(**std::move(entry), *std::move(letter));
}

int RunShow(const Context& context, const DeadArguments& arguments) {
  const auto key = context.Key(arguments.keys[0]).value();
  const auto found = Read(context.MakeClient(), key).value();
  if (!found) return Miss(context, {{"found", false}});
  const auto& [entry, letter] = *found;
  return Print(context, ToJson(entry, letter, context.encodings),
               Describe(entry, letter, context.encodings));
}

// What is done with each of the letters that the arguments select, in turn.
class LetterWork {
 public:
  // Does it, and sets what to print: the text, and more fields of the object.
  // FAILED_PRECONDITION: the letter stays, and the others have their turn.
  using Do =
      std::function<absl::Status(const Entry& entry, const DeadLetter& letter,
                                 std::string* text, Json* object)>;

  // `what` is true in the object of a letter with which it is done.
  LetterWork(const Context& context, const DeadArguments& arguments,
             std::string what, Do work)
      : context_(context),
        arguments_(arguments),
        what_(std::move(what)),
        work_(std::move(work)) {}

  int Run(const Client& client) {
    const absl::Status status =
        arguments_.all ? WorkThroughAll(client) : WorkThroughKeys(client);
    if (!written_ || !Flush()) return context_.FailToWrite();
    if (!status.ok()) return context_.Fail(status);
    return left_over_ ? kExitNotFound : kExitDone;
  }

 private:
  absl::Status WorkThroughAll(const Client& client) {
    DeadLetterWalk walk;
    absl::Status failure;
    const absl::Status scanned = VisitDeadLetters(
        context_, client, arguments_.filter,
        [&](const Entry& entry, const DeadLetter& letter) {
          failure = Work(entry, letter);
          return failure.ok() && written_;
        },
        &walk);
    WarnOfOthers(context_, walk);
    return failure.ok() ? scanned : failure;
  }

  absl::Status WorkThroughKeys(const Client& client) {
    for (const std::string& argument : arguments_.keys) {
      const auto key = context_.Key(argument);
      if (!key.ok()) return key.status();
      const auto found = Read(client, *key);
      if (!found.ok()) return found.status();
      const absl::Status status =
          *found ? Work((*found)->first, (*found)->second)
                 : LeaveOver(*key, absl::NotFoundError("not found"));
      if (!status.ok() || !written_) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Work(const Entry& entry, const DeadLetter& letter) {
    std::string text;
    Json object;
    SetBytes(object, "letter", entry.key, context_.encodings.key);
    object[what_] = true;
    const absl::Status status = work_(entry, letter, &text, &object);
    if (absl::IsFailedPrecondition(status)) return LeaveOver(entry.key, status);
    if (!status.ok()) return status;
    written_ = context_.json ? WriteJson(object) : WriteLine(text);
    return absl::OkStatus();
  }

  absl::Status LeaveOver(const std::string& key, const absl::Status& why) {
    left_over_ = true;
    if (!context_.json) {
      Warn(absl::StrCat(key, ": ", why.message()));
      return absl::OkStatus();
    }
    Json object;
    SetBytes(object, "letter", key, context_.encodings.key);
    object[what_] = false;
    if (const auto reason = ReasonName(why)) object["reason"] = *reason;
    object["message"] = std::string(why.message());
    written_ = WriteJson(object);
    return absl::OkStatus();
  }

  const Context& context_;
  const DeadArguments& arguments_;
  const std::string what_;
  const Do work_;
  bool left_over_ = false;
  bool written_ = true;
};

int RunReturn(const Context& context, const DeadArguments& arguments) {
  const Client client = context.MakeClient();
  return LetterWork(
             context, arguments, "returned",
             [&](const Entry& entry, const DeadLetter& letter,
                 std::string* text, Json* object) -> absl::Status {
               if (absl::Status status =
                       PutBackEvent(client, letter.event, arguments.put_back);
                   !status.ok()) {
                 return status;
               }
               if (absl::Status status = RemoveLetter(client, entry);
                   !status.ok()) {
                 return absl::Status(
                     status.code(),
                     absl::StrCat(
                         "its entry is back in namespace ", letter.event.ns,
                         ", but the letter stays: ", status.message()));
               }
               *text = absl::StrCat(
                   "returned ", entry.key, " to ", letter.event.ns, " as ",
                   Encode(letter.event.key, context.encodings.key));
               (*object)["namespace"] = letter.event.ns;
               SetBytes(*object, "key", letter.event.key,
                        context.encodings.key);
               return absl::OkStatus();
             })
      .Run(client);
}

int RunDrop(const Context& context, const DeadArguments& arguments) {
  const std::string what =
      arguments.all ? absl::StrCat("all ", arguments.filter.Text())
                    : absl::StrCat(arguments.keys.size(), " dead letters");
  if (!arguments.yes && IsInteractive() &&
      !Ask(absl::StrCat("drop ", what, " of namespace ", context.ns(),
                        " with their values?"))) {
    Warn("nothing was dropped");
    return kExitError;
  }
  const Client client = context.MakeClient();
  return LetterWork(context, arguments, "dropped",
                    [&](const Entry& entry, const DeadLetter&,
                        std::string* text, Json*) {
                      *text = absl::StrCat("dropped ", entry.key);
                      return RemoveLetter(client, entry);
                    })
      .Run(client);
}

void AddFilter(CLI::App& app, DeadLetterFilter& filter) {
  app.add_option("--from", filter.ns, "Only events of this namespace")
      ->type_name("NAMESPACE");
  app.add_option("--group", filter.group, "Only those of this group")
      ->type_name("GROUP");
}

// Adds `dead NAME-OF-COMMAND`, which does `run`.
CLI::App* AddDeadCommand(CLI::App& dead, Context& context,
                         const std::string& name, const std::string& help,
                         const std::shared_ptr<DeadArguments>& arguments,
                         int (*run)(const Context&, const DeadArguments&)) {
  CLI::App* app = dead.add_subcommand(name, help);
  OnRun(app, context, arguments, run, [app](const DeadArguments& given) {
    if (app->get_option_no_throw("--all") == nullptr) return;
    if (given.all == !given.keys.empty()) {
      throw CLI::ValidationError(app->get_name(), "give keys, or --all");
    }
    if (!given.all && !given.filter.is_empty()) {
      throw CLI::ValidationError("--from, --group", "go with --all");
    }
  });
  return app;
}

void AddSelection(CLI::App& app, DeadArguments& arguments) {
  app.add_option("key", arguments.keys, "The letters' keys, one or more");
  app.add_flag("--all", arguments.all,
               "All letters of the namespace, or those of --from and --group");
  AddFilter(app, arguments.filter);
}

void AddReturn(CLI::App& dead, Context& context) {
  auto arguments = std::make_shared<DeadArguments>();
  CLI::App* app = AddDeadCommand(
      dead, context, "return",
      "Put the entries back into their namespaces, and remove the letters",
      arguments, RunReturn);
  AddSelection(*app, *arguments);
  AddDuration(
      *app, "--ttl", arguments->put_back.ttl,
      "Their time to live; else the own one that they had, or the namespace's");
  app->add_flag("--overwrite", arguments->put_back.overwrite,
                "Also where the key exists again; else the letter stays");
  app->footer(
      R"(Each entry gets its value, or its parts, and a fresh time to live. Its letter is
removed afterwards, unless it has changed meanwhile. Exits with 1 if a letter
does not exist or stays.

Examples:
  timecachectl dead return -n orders-failed orders/billing/7
  timecachectl dead return -n orders-failed --all --from orders --ttl 10m)");
}

void AddDrop(CLI::App& dead, Context& context) {
  auto arguments = std::make_shared<DeadArguments>();
  CLI::App* app = AddDeadCommand(dead, context, "drop",
                                 "Remove letters for good", arguments, RunDrop);
  AddSelection(*app, *arguments);
  app->add_flag("-y,--yes", arguments->yes, "Do not ask");
  app->footer(
      "Asks first at a terminal; a script is not asked.\n\n"
      "Examples:\n"
      "  timecachectl dead drop -n orders-failed orders/billing/7\n"
      "  timecachectl dead drop -n orders-failed --all --group billing --yes");
}

}  // namespace

void AddDeadCommands(CLI::App& app, Context& context) {
  CLI::App* dead = app.add_subcommand(
      "dead", "Show, return and drop the dead letters of consumer groups");
  dead->require_subcommand(1);
  dead->footer(
      R"(-n names the namespace that they go to: the --dead-letter of the one whose events
they are.

Examples:
  timecachectl dead list -n orders-failed --from orders --group billing
  timecachectl dead show -n orders-failed orders/billing/7
  timecachectl dead return -n orders-failed orders/billing/7
  timecachectl dead drop -n orders-failed --all)");
  auto arguments = std::make_shared<DeadArguments>();
  CLI::App* list = AddDeadCommand(*dead, context, "list",
                                  "List them, in no particular order",
                                  arguments, RunListLetters);
  AddFilter(*list, arguments->filter);
  list->footer(
      R"(Prints, tab-separated: when the letter was made, how the last attempt ended,
the number of attempts, the letter's key (NAMESPACE/GROUP/EVENT), the entry's
key. --json prints values, too.

Example:
  timecachectl dead list -n orders-failed --from orders --json)");
  arguments = std::make_shared<DeadArguments>();
  CLI::App* show =
      AddDeadCommand(*dead, context, "show",
                     "Show a letter: the event, its value, and why it is one",
                     arguments, RunShow);
  show->add_option("key", arguments->keys, "The letter's key")
      ->required()
      ->expected(1);
  show->footer(
      "Example:\n"
      "  timecachectl dead show -n orders-failed orders/billing/7");
  AddReturn(*dead, context);
  AddDrop(*dead, context);
}

}  // namespace timecache::cli
