// Commands, and flags with units, on CLI11. A value that cannot be read is a usage error that
// names the flag.

#ifndef TIMECACHED_CLIENT_CLI_FLAGS_H_
#define TIMECACHED_CLIENT_CLI_FLAGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/context.h"
#include "client/cli/ui/units.h"
#include "timecache/types.h"

namespace timecache::cli {

// Runs a command. An error that it throws, as StatusOr's value() does, is how it
// ends.
template <typename Run, typename... Arguments>
int RunCommand(const Context& context, const Run& run,
               const Arguments&... arguments) {
  try {
    return run(context, arguments...);
  } catch (const absl::BadStatusOrAccess& error) {
    return context.Fail(error.status());
  }
}

struct NoCheck {
  void operator()(const auto& /*arguments*/) const {}
};

// The command calls `run` with the context, and with its arguments if it has
// any. Before, `check` throws a CLI::ParseError for arguments that do not go
// together.
template <typename Arguments, typename Run, typename Check = NoCheck>
void OnRun(CLI::App* app, Context& context,
           const std::shared_ptr<Arguments>& arguments, Run run,
           Check check = {}) {
  app->callback([&context, arguments, run, check] {
    check(*arguments);
    context.command = [&context, arguments, run] {
      return RunCommand(context, run, *arguments);
    };
  });
}
template <typename Run>
void OnRun(CLI::App* app, Context& context, Run run) {
  app->callback([&context, run] {
    context.command = [&context, run] { return RunCommand(context, run); };
  });
}

// The same for a command about a namespace that is among its arguments: errors
// name that one.
template <typename Arguments, typename Run>
void OnRunAbout(CLI::App* app, Context& context,
                const std::shared_ptr<Arguments>& arguments, Run run) {
  OnRun(app, context, arguments, [run](Context about, const Arguments& given) {
    about.namespaces = {given.ns};
    return RunCommand(about, run, given);
  });
}

// `value` as a 32-bit field, which the server then checks against its own
// range.
inline uint32_t Narrow(const std::string& name, uint64_t value) {
  if (value > UINT32_MAX) throw CLI::ValidationError(name, "is too large");
  return static_cast<uint32_t>(value);
}

template <typename Value, typename Set>
CLI::Option* AddParsed(CLI::App& app, const std::string& name,
                       absl::StatusOr<Value> (*parse)(absl::string_view),
                       Set set, const std::string& type,
                       const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [name, parse, set](const std::string& text) {
            const absl::StatusOr<Value> value = parse(text);
            if (!value.ok()) {
              throw CLI::ValidationError(name,
                                         std::string(value.status().message()));
            }
            set(*value);
          },
          help)
      ->type_name(type);
}

// What sets a field, or what is a function that does.
template <typename Target>
auto Setter(const std::string& name, Target& target) {
  return [name, &target](const auto& value) {
    if constexpr (std::is_same_v<Target, std::optional<uint32_t>> ||
                  std::is_same_v<Target, uint32_t>) {
      target = Narrow(name, value);
    } else {
      target = value;
    }
  };
}
template <typename Set>
Set Setter(const std::string& /*name*/, const Set&& set) {
  return set;
}

// `set`: a field that outlives the parsing, or a function of the value.
template <typename Set>
CLI::Option* AddDuration(CLI::App& app, const std::string& name, Set&& set,
                         const std::string& help) {
  return AddParsed<absl::Duration>(app, name, ParseDuration,
                                   Setter(name, std::forward<Set>(set)),
                                   "DURATION", help);
}
template <typename Set>
CLI::Option* AddTime(CLI::App& app, const std::string& name, Set&& set,
                     const std::string& help) {
  return AddParsed<absl::Time>(
      app, name, ParseTime, Setter(name, std::forward<Set>(set)), "TIME", help);
}
template <typename Set>
CLI::Option* AddSize(CLI::App& app, const std::string& name, Set&& set,
                     const std::string& help) {
  return AddParsed<uint64_t>(
      app, name, ParseSize, Setter(name, std::forward<Set>(set)), "SIZE", help);
}
template <typename Set>
CLI::Option* AddCount(CLI::App& app, const std::string& name, Set&& set,
                      const std::string& help) {
  return AddParsed<uint64_t>(app, name, ParseCount,
                             Setter(name, std::forward<Set>(set)), "N", help);
}

// --id, of options that have an idempotency id.
template <typename Options>
CLI::Option* AddId(CLI::App& app, Options& options) {
  return app.add_option(
      "--id", options.idempotency_id,
      "Do it once: if a request with this id has succeeded on "
      "the key, print its answer and change nothing; needs the "
      "namespace's idempotency window");
}

// --traceparent, of options that have one.
template <typename Options>
CLI::Option* AddTraceparent(CLI::App& app, Options& options) {
  return app.add_option(
      "--traceparent", options.traceparent,
      "A W3C traceparent, which is kept with the entry for its event");
}

// --expire-at and --allow-past, of options that have these.
template <typename Options>
CLI::Option* AddExpireAt(CLI::App& app, Options& options) {
  CLI::Option* const expire_at = AddTime(
      app, "--expire-at", options.expire_at,
      "The entry expires at this time, on the server's clock: RFC 3339, or "
      "seconds since 1970; --ttl is then what a later renewal gives");
  app.add_flag("--allow-past", options.allow_past,
               "A past --expire-at is no error: the entry expires at once")
      ->needs(expire_at);
  return expire_at;
}

// To check an option. CLI11's own prints a range that ends at the largest
// double.
inline CLI::Validator AtLeastOne() {
  return CLI::Validator(
      [](const std::string& text) {
        uint64_t number = 0;
        return absl::SimpleAtoi(text, &number) && number > 0
                   ? std::string()
                   : absl::StrCat("\"", text, "\" is not a number from 1");
      },
      "");
}

// Adds `--default OPTION`, which takes the names of the flags that `app` has.
inline void AddDefault(CLI::App& app, std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help" && !absl::StartsWith(name, "no-")) {
        names.push_back(name);
      }
    }
  }
  app.add_option("--default", options,
                 "Set this option to its default; as often as wanted")
      ->type_name("OPTION")
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [names](const std::string& option) {
            return absl::c_linear_search(names, option)
                       ? std::string()
                       : absl::StrCat("\"", option, "\" is none of ",
                                      absl::StrJoin(names, ", "));
          },
          ""));
}

// To transform an option: to one of these, also from how the API and the
// configuration write it, EVICT_OLDEST and evict_oldest.
inline CLI::IsMember OneOf(std::vector<std::string> names) {
  return CLI::IsMember(std::move(names), [](const std::string& name) {
    return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}});
  });
}

// Without the slashes that a shell's completion leaves at its end.
inline std::string TrimmedPath(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

// Adds --if-absent, --if-present and --if-version, of which one may be given.
template <typename Options>
void AddPreconditions(CLI::App& app, Options& options) {
  auto* absent = app.add_flag_callback(
      "--if-absent",
      [&options] { options.condition = PutCondition::kIfAbsent; },
      "Only if the key does not exist");
  auto* present = app.add_flag_callback(
      "--if-present",
      [&options] { options.condition = PutCondition::kIfPresent; },
      "Only if the key exists");
  auto* version = AddCount(
      app, "--if-version",
      [&options](uint64_t version) { options.if_version = version; },
      "Only if the key has this version");
  absent->excludes(present)->excludes(version);
  present->excludes(version);
}

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_FLAGS_H_
