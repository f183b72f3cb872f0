// Named servers, with what it takes to reach them, in a file of the user's.

#ifndef TIMECACHED_CLIENT_CLI_CONTEXTS_H_
#define TIMECACHED_CLIENT_CLI_CONTEXTS_H_

#include <map>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/context.h"
#include "timecache/channel.h"

namespace timecache::cli {

// A server, or the nodes of a cluster. Of secrets it has the names of files.
struct NamedServer {
  std::string address;
  // Empty: the default one.
  std::string ns = {};
  ChannelOptions channel = {};
};

// The file contexts.json in the user's directory for configuration. Not
// thread-safe; of two programs that write it at once, one wins.
struct Contexts {
  std::map<std::string, NamedServer> servers = {};
  // The one that commands use which name no server; empty: none.
  std::string current = {};

  // None if there is no file. INVALID_ARGUMENT if it is malformed.
  static absl::StatusOr<Contexts> Read();
  // Replaces the file, which only the user may read.
  absl::Status Write() const;
  // NOT_FOUND if there is none of this name.
  absl::StatusOr<NamedServer> Find(const std::string& name) const;
};

// `name` in "$VARIABLE/timecached", or, without that variable, in
// "$HOME/FALLBACK/timecached". FAILED_PRECONDITION without a home.
absl::StatusOr<std::string> UserFile(const char* variable, const char* fallback,
                                     const std::string& name);
// Makes the directory of this file, for the user alone.
absl::Status MakeDirectoryOf(const std::string& path);

// 1 to 63 letters, digits and ._-, or INVALID_ARGUMENT.
absl::Status CheckContextName(std::string_view name);

// Sets what the flags of `app`, which have been parsed, and the environment
// leave open, as the context says that --context names, or else the current
// one. A server that is named by --address alone has nothing of the current
// context: its credentials are for another.
absl::Status ApplyContext(const CLI::App& app, Context& context);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONTEXTS_H_
