// get.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/many_operations.h"
#include "client/cli/flags.h"
#include "client/cli/server_clock.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

// How old the time may be from which the remaining time is computed.
constexpr absl::Duration kGetClockAge = absl::Milliseconds(100);

struct GetArguments {
  std::vector<std::string> keys;
  GetOptions options;
  bool raw = false;
  bool all = false;
  bool ttl = false;

  bool many() const { return keys.size() > 1; }
};

// One run of the command.
class Getter {
 public:
  Getter(const Context& context, const GetArguments& arguments)
      : context_(context),
        arguments_(arguments),
        client_(context.MakeClient()) {}

  int Run() {
    std::vector<std::string> keys;
    for (const std::string& argument : arguments_.keys) {
      keys.push_back(context_.Key(argument).value());
    }
    const absl::Status status = arguments_.many() ? GetAll(keys) : GetOne(keys);
    if (!written_ || !Flush()) return context_.FailToWrite();
    if (!status.ok()) return context_.Fail(status);
    return missed_ ? kExitNotFound : kExitDone;
  }

 private:
  absl::Status GetOne(const std::vector<std::string>& keys) {
    auto entry = client_.Get(keys[0], arguments_.options);
    if (!entry.ok()) return entry.status();
    return Take(keys[0], *entry);
  }

  absl::Status GetAll(const std::vector<std::string>& keys) {
    ManyOperations gets(client_, [&](size_t i, OperationResult& result) {
      return result.status.ok() ? Take(keys[i], result.entry) : result.status;
    });
    for (const std::string& key : keys) {
      const absl::Status status =
          gets.Add(Operation::Get(key, arguments_.options));
      if (!status.ok()) return status;
    }
    return gets.Finish();
  }

  // What a key has, or that it is not there.
  absl::Status Take(const std::string& key, std::optional<Entry>& entry) {
    if (!entry) {
      missed_ = true;
      PrintMiss(key);
      return Written();
    }
    entry->key = key;
    std::optional<absl::Duration> left;
    if (arguments_.ttl || arguments_.all) {
      const auto now = clock_.Reached(kGetClockAge);
      if (!now.ok()) return now.status();
      left = TimeLeft(*entry, *now);
    }
    Print(*entry, left);
    return Written();
  }

  // Ends the command; Run says why.
  absl::Status Written() const {
    return written_ ? absl::OkStatus() : absl::CancelledError();
  }

  void PrintMiss(const std::string& key) {
    if (context_.json) {
      Json miss = {{"found", false}};
      SetBytes(miss, "key", key, context_.encodings.key);
      written_ = WriteJson(miss);
    } else if (arguments_.many()) {
      Warn(absl::StrCat("not found: ", key));
    } else {
      Warn("not found");
    }
  }

  void Print(const Entry& entry, std::optional<absl::Duration> left) {
    if (context_.json) {
      Json object = {{"found", true}};
      object.update(ToJson(entry, context_.encodings));
      if (left) object["left_ms"] = absl::ToInt64Milliseconds(*left);
      written_ = WriteJson(object);
      return;
    }
    if (arguments_.raw) {
      written_ =
          Write(entry.parts ? ValueText(entry, Encoding::kText) : entry.value);
      return;
    }
    const bool as_is = context_.encodings.value == Encoding::kText &&
                       !arguments_.all && !arguments_.many() && !entry.parts &&
                       isatty(STDOUT_FILENO) != 1;
    std::string text =
        as_is ? entry.value : ValueText(entry, context_.encodings.value);
    if (arguments_.many()) {
      text =
          absl::StrCat(Encode(entry.key, context_.encodings.key), "\t", text);
    }
    if (arguments_.all) {
      absl::StrAppend(&text, "\nversion  ", entry.version, "\nput      ",
                      ExactTimeText(entry.put_time), "\ncreated  ",
                      ExactTimeText(entry.create_time), "\ndeadline ",
                      ExactTimeText(entry.deadline));
      if (entry.own_ttl) {
        absl::StrAppend(&text, "\nown ttl  ", DurationText(*entry.own_ttl));
      }
    }
    if (left) absl::StrAppend(&text, "\nleft     ", LeftText(*left));
    written_ = WriteLine(text);
  }

  const Context& context_;
  const GetArguments& arguments_;
  const Client client_;
  ServerClock clock_{client_};
  bool missed_ = false;
  bool written_ = true;
};

}  // namespace

void AddGetCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* get = app.add_subcommand("get", "Show the values of keys");
  get->add_option("key", arguments->keys, "The keys, one or more")->required();
  get->add_flag_callback(
         "--touch", [arguments] { arguments->options.touch = true; },
         "Renew the entries' time to live, too")
      ->excludes(get->add_flag_callback(
          "--no-touch", [arguments] { arguments->options.touch = false; },
          "Do not renew it, in a sliding namespace, either"));
  auto* raw = get->add_flag("--raw", arguments->raw,
                            "The value's bytes and nothing else: no escapes, "
                            "no end of line");
  get->add_flag("--ttl", arguments->ttl, "Show the remaining time to live, too")
      ->excludes(raw);
  get->add_flag("-a,--all", arguments->all,
                "Show version, times, own and remaining time to live, too")
      ->excludes(raw);
  get->footer(
      "Prints the value of one key, and KEY<TAB>VALUE of several. On a "
      "terminal,\n"
      "and of several keys, bytes that are not text are shown as \\x00 and a\n"
      "backslash as two. The remaining time is until the deadline, by the\n"
      "server's clock. Exits with 1 if a key does not exist.\n\n"
      "Examples:\n"
      "  timecachectl get session:7\n"
      "  timecachectl get session:7 --ttl\n"
      "  timecachectl get session:7 session:8 --json\n"
      "  timecachectl get photo:1 --raw > photo.jpg\n"
      "  timecachectl get session:7 --json | jq -r .deadline");
  OnRun(
      get, context, arguments,
      [](const Context& on, const GetArguments& given) {
        return Getter(on, given).Run();
      },
      [](const GetArguments& given) {
        if (given.raw && given.many()) {
          throw CLI::ValidationError("--raw", "is for one key");
        }
      });
}

}  // namespace timecache::cli
