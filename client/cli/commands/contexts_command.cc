// contexts: named servers.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/contexts.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {
namespace {

// As seen from any directory.
std::string Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

int AddServer(const CLI::App& app, const Context& context,
              const std::string& name) {
  absl::Status status = CheckContextName(name);
  if (status.ok() && app.count("--address") == 0) {
    status = absl::InvalidArgumentError("say where it is with --address");
  }
  if (!status.ok()) return context.Fail(status);
  Contexts contexts = Contexts::Read().value();
  NamedServer server = {.address = context.address, .channel = context.channel};
  if (context.namespace_given) server.ns = context.ns();
  for (std::string* file :
       {&server.channel.ca_file, &server.channel.certificate_file,
        &server.channel.key_file, &server.channel.token_file}) {
    *file = Absolute(*file);
  }
  contexts.servers[name] = std::move(server);
  // The first one is the one that is meant.
  if (contexts.servers.size() == 1) contexts.current = name;
  status = contexts.Write();
  if (!status.ok()) return context.Fail(status);
  return Print(
      context, {{"context", name}, {"current", contexts.current}},
      absl::StrCat("added ", name,
                   contexts.current == name ? ", the current one" : ""));
}

int UseServer(const Context& context, const std::string& name) {
  Contexts contexts = Contexts::Read().value();
  absl::Status status = contexts.Find(name).status();
  if (!status.ok()) return context.Fail(status);
  contexts.current = name;
  status = contexts.Write();
  if (!status.ok()) return context.Fail(status);
  return Print(context, {{"current", name}},
               absl::StrCat("commands now use ", name));
}

int RemoveServer(const Context& context, const std::string& name) {
  Contexts contexts = Contexts::Read().value();
  absl::Status status = contexts.Find(name).status();
  if (!status.ok()) return context.Fail(status);
  contexts.servers.erase(name);
  if (contexts.current == name) contexts.current.clear();
  status = contexts.Write();
  if (!status.ok()) return context.Fail(status);
  return Print(context, {{"removed", name}, {"current", contexts.current}},
               absl::StrCat("removed ", name));
}

int ListServers(const Context& context) {
  const Contexts contexts = Contexts::Read().value();
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows;
  size_t widths[2] = {4, 7};
  for (const auto& [name, server] : contexts.servers) {
    const bool current = name == contexts.current;
    all.push_back({{"name", name},
                   {"current", current},
                   {"address", server.address},
                   {"namespace", server.ns},
                   {"tls", server.channel.wants_tls()},
                   {"token_file", server.channel.token_file}});
    rows.push_back({name, server.address, server.ns, current ? "*" : " "});
    widths[0] = std::max(widths[0], name.size());
    widths[1] = std::max(widths[1], server.address.size());
  }
  rows.insert(rows.begin(), {"NAME", "ADDRESS", "NAMESPACE", " "});
  std::string text;
  for (std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < 2; ++i) row[i].resize(widths[i], ' ');
    absl::StrAppend(&text, text.empty() ? "" : "\n", row[3], " ", row[0], "  ",
                    row[1], "  ", row[2]);
    while (text.back() == ' ') text.pop_back();
  }
  return Print(context, {{"contexts", std::move(all)}},
               contexts.servers.empty() ? "there are none" : text);
}

}  // namespace

void AddContextsCommands(CLI::App& app, Context& context) {
  CLI::App* contexts = app.add_subcommand(
      "contexts",
      "Named servers, so that no command has to say how to get there");
  contexts->require_subcommand(1);
  contexts->footer(
      R"(A context has an address, a namespace, and the names of the files of TLS and of
the token. The current one is used by commands that name no server, by --address
or TIMECACHED_ADDRESS; --context NAME or TIMECACHED_CONTEXT uses another. Flags
and variables go before what a context says. They are kept in
~/.config/timecached/contexts.json.

Examples:
  timecachectl contexts add prod --address a:7171,b:7171 --ca ca.crt \
      --token-file token -n orders
  timecachectl contexts use prod
  timecachectl --context staging status)");
  const auto add = [contexts](const char* name, const char* help,
                              const char* what, const auto& argument) {
    CLI::App* const command = contexts->add_subcommand(name, help);
    command->add_option("name", *argument, what)->required();
    command->footer(absl::StrCat(
        "Examples:\n  timecachectl contexts ", name, " prod",
        std::string(name) == "add" ? " --address cache:7171 --tls" : ""));
    return command;
  };
  auto name = std::make_shared<std::string>();
  OnRun(add("add", "Add one, or replace it, as the flags of this command say",
            "Its name", name),
        context, name, [&app](const Context& on, const std::string& given) {
          return AddServer(app, on, given);
        });
  name = std::make_shared<std::string>();
  OnRun(add("use", "Make it the current one", "The context", name), context,
        name, UseServer);
  name = std::make_shared<std::string>();
  OnRun(add("remove", "Forget it", "The context", name), context, name,
        RemoveServer);
  CLI::App* list = contexts->add_subcommand("list", "List them");
  list->footer("Examples:\n  timecachectl contexts list");
  OnRun(list, context, ListServers);
}

}  // namespace timecache::cli
