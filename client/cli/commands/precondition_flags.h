// The flags that say what must hold for a put or an append.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_PRECONDITION_FLAGS_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_PRECONDITION_FLAGS_H_

#include "client/cli/flags.h"
#include "timecache/types.h"

namespace timecache::cli {

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

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_PRECONDITION_FLAGS_H_
