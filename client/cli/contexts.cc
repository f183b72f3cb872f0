#include "client/cli/contexts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {
namespace {

constexpr size_t kMaxNameBytes = 63;

absl::StatusOr<std::string> ContextsPath() {
  return UserFile("XDG_CONFIG_HOME", ".config", "contexts.json");
}

// The file's name of each field.
template <typename Server, typename Visit>
void ForEachText(Server& server, const Visit& visit) {
  visit("address", server.address);
  visit("namespace", server.ns);
  visit("ca", server.channel.ca_file);
  visit("cert", server.channel.certificate_file);
  visit("key", server.channel.key_file);
  visit("server_name", server.channel.server_name);
  visit("token_file", server.channel.token_file);
}
template <typename Server, typename Visit>
void ForEachFlag(Server& server, const Visit& visit) {
  visit("tls", server.channel.tls);
  visit("allow_plaintext_token", server.channel.allow_plaintext_token);
}

NamedServer ServerOf(const Json& object) {
  NamedServer server;
  ForEachText(server, [&](const char* name, std::string& text) {
    text = object.value(name, "");
  });
  ForEachFlag(server, [&](const char* name, bool& flag) {
    flag = object.value(name, false);
  });
  return server;
}

Json JsonOf(const NamedServer& server) {
  Json object = Json::object();
  ForEachText(server, [&](const char* name, const std::string& text) {
    if (!text.empty()) object[name] = text;
  });
  ForEachFlag(server, [&](const char* name, bool flag) {
    if (flag) object[name] = true;
  });
  return object;
}

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, path);
}

absl::Status WriteAll(int fd, const std::string& text,
                      const std::string& path) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path);
    written += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> UserFile(const char* variable, const char* fallback,
                                     const std::string& name) {
  // The XDG specification has relative paths ignored.
  if (const char* const base = std::getenv(variable);
      base != nullptr && base[0] == '/') {
    return absl::StrCat(base, "/timecached/", name);
  }
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0') {
    return absl::FailedPreconditionError(
        absl::StrCat("neither $", variable, " nor $HOME is set"));
  }
  return absl::StrCat(home, "/", fallback, "/timecached/", name);
}

absl::Status MakeDirectoryOf(const std::string& path) {
  const std::filesystem::path directory =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  if (std::filesystem::create_directories(directory, error)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all,
                                 error);
  }
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), directory.string());
}

absl::StatusOr<Contexts> Contexts::Read() {
  const absl::StatusOr<std::string> path = ContextsPath();
  Contexts contexts;
  if (!path.ok()) return contexts;
  std::ifstream file(*path);
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) return contexts;
    return SystemError(*path);
  }
  std::stringstream text;
  text << file.rdbuf();
  try {
    const Json all = Json::parse(text.str());
    contexts.current = all.value("current", "");
    for (const auto& [name, server] : all.at("contexts").items()) {
      contexts.servers[name] = ServerOf(server);
    }
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        *path, " is malformed: correct it, or remove it: ", error.what()));
  }
  return contexts;
}

absl::Status Contexts::Write() const {
  const absl::StatusOr<std::string> path = ContextsPath();
  if (!path.ok()) return path.status();
  absl::Status status = MakeDirectoryOf(*path);
  if (!status.ok()) return status;
  Json all = {{"current", current}, {"contexts", Json::object()}};
  for (const auto& [name, server] : servers) {
    all["contexts"][name] = JsonOf(server);
  }
  // Beside it, so that a reader sees one or the other.
  const std::string next = absl::StrCat(*path, ".", getpid());
  const int fd =
      open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError(next);
  status = WriteAll(fd, all.dump(2) + "\n", next);
  if (close(fd) != 0 && status.ok()) status = SystemError(next);
  if (status.ok() && rename(next.c_str(), path->c_str()) != 0) {
    status = SystemError(*path);
  }
  if (!status.ok()) unlink(next.c_str());
  return status;
}

absl::StatusOr<NamedServer> Contexts::Find(const std::string& name) const {
  const auto it = servers.find(name);
  if (it != servers.end()) return it->second;
  return absl::NotFoundError(
      absl::StrCat("there is no context \"", name,
                   "\": list those that exist with: timecachectl contexts "
                   "list"));
}

absl::Status CheckContextName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxNameBytes;
  for (const char c : name) {
    good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    std::string_view("._-").find(c) != std::string_view::npos);
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the name of a context has 1 to 63 letters, digits and ._-");
}

absl::Status ApplyContext(const CLI::App& app, Context& context) {
  const auto given = [&app](const char* name) { return app.count(name) > 0; };
  const bool named = given("--context");
  // In the shell the current context has been applied as that started.
  if (!named && (given("--address") || context.in_shell)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<Contexts> contexts = Contexts::Read();
  if (!contexts.ok()) return contexts.status();
  if (!named) context.name = contexts->current;
  if (context.name.empty()) return absl::OkStatus();
  absl::StatusOr<NamedServer> server = contexts->Find(context.name);
  if (!server.ok()) return server.status();
  const auto set = [&given](const char* flag, auto& to, auto& from) {
    if (!given(flag)) to = std::move(from);
  };
  set("--address", context.address, server->address);
  ChannelOptions& to = context.channel;
  ChannelOptions& from = server->channel;
  set("--tls", to.tls, from.tls);
  set("--ca", to.ca_file, from.ca_file);
  set("--cert", to.certificate_file, from.certificate_file);
  set("--key", to.key_file, from.key_file);
  set("--server-name", to.server_name, from.server_name);
  set("--token-file", to.token_file, from.token_file);
  set("--allow-plaintext-token", to.allow_plaintext_token,
      from.allow_plaintext_token);
  if (!given("--namespace") && !server->ns.empty()) {
    context.namespaces = {server->ns};
  }
  return absl::OkStatus();
}

}  // namespace timecache::cli
