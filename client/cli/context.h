// What all commands share: the global flags, the connection, and error reports.

#ifndef TIMECACHED_CLIENT_CLI_CONTEXT_H_
#define TIMECACHED_CLIENT_CLI_CONTEXT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/ui/bytes.h"
#include "timecache/channel.h"
#include "timecache/client.h"

namespace timecache::cli {

// How timecachectl exits.
inline constexpr int kExitDone = 0;  // Found, or done.
// Not there, or a condition does not hold.
inline constexpr int kExitNotFound = 1;
inline constexpr int kExitError = 2;  // Anything else, wrong usage included.
// And the signal's number: 130 after Ctrl-C, as of a program that it kills.
inline constexpr int kExitInterrupted = 128;

// Most bytes read from standard input as one value: the largest value there can
// be.
inline constexpr size_t kMaxStdinBytes = 16 << 20;

struct Context;

// What a command line is made of, and run by: main.cc has it.
struct Program {
  // Adds all flags and commands to `app`, which set what is in `context`. Both
  // must outlive their use.
  void (*build)(CLI::App& app, Context& context);
  // Runs the command line of these words; returns the exit code.
  int (*run)(const std::vector<std::string>& words, Context context);
};

// The client that the lines of a shell share.
struct SharedClient {
  // The address and the files that it was made with.
  std::string server;
  std::optional<Client> client;
};

// The flags that every command takes, before or after its name.
struct Context {
  std::string address = "127.0.0.1:7171";
  ChannelOptions channel;
  std::vector<std::string> namespaces = {"default"};
  absl::Duration timeout = absl::Seconds(5);
  bool timeout_given = false;
  // By a flag or, unless the command leaves that out, the environment.
  bool namespace_given = false;
  // The command manages namespaces: one that does not exist is no reason to
  // create it.
  bool manages_namespaces = false;
  bool json = false;
  Encodings encodings = {};
  // The context, of named servers, that --context names, or else the current
  // one; empty: none is used.
  std::string name = {};
  // A line of the shell: where it has no flag it is as the shell is, and the
  // environment is not asked again.
  bool in_shell = false;
  // Null but in the shell.
  std::shared_ptr<SharedClient> shared_client = nullptr;
  // Not null once main has set it.
  const Program* program = nullptr;
  // What the command that was named does; returns the exit code.
  std::function<int()> command = {};

  // The one namespace of a command that works on one.
  const std::string& ns() const { return namespaces.front(); }
  // Files of the connection that cannot be used end the program, or the line of
  // the shell, with the reason.
  Client MakeClient() const;

  // The bytes that an argument stands for. "-" is standard input, to its end:
  // as it is, or, encoded, without the white space around it.
  absl::StatusOr<std::string> Value(const std::string& argument) const;
  absl::StatusOr<std::string> Key(const std::string& argument) const;

  // Reports an error and its remedy on standard error, as text or JSON. Returns
  // kExitError.
  int Fail(const absl::Status& status) const;
  // The text of it.
  std::string Explain(const absl::Status& status) const;
  // That the connection of a watch broke, and why.
  std::string ExplainBreak(const absl::Status& why) const;
  // The exit code of a command whose output could not be written: no error
  // message if the reader has closed it.
  int FailToWrite() const;
};

// A message on standard error.
void Warn(std::string_view message);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONTEXT_H_
