// console: a server in the browser.
#include <openssl/rand.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/shell_command.h"
#include "client/cli/console/http_front.h"
#include "client/cli/console/request_guard.h"
#include "client/cli/console/rpc_bridge.h"
#include "client/cli/flags.h"
#include "client/cli/ui/interrupt.h"
#include "client/cli/ui/output.h"
#include "server/base/address.h"
#include "server/base/read_file.h"

namespace timecache::cli {
namespace {

constexpr size_t kLoginTokenBytes = 32;
// Of one in a file, in characters.
constexpr size_t kMinLoginToken = 16;
constexpr size_t kMaxLoginToken = 512;

struct ConsoleArguments {
  std::string listen = "127.0.0.1:7173";
  std::vector<std::string> hosts;
  std::string certificate_file;
  std::string key_file;
  std::string login_token_file;
  bool read_only = false;
  bool open = false;

  bool tls() const { return !certificate_file.empty(); }
};

// The host as browsers write it, and the port.
struct ListenAddress {
  std::string host;
  int port = 0;

  bool is_any() const { return host == "0.0.0.0" || host == "[::]"; }
  // "::1" of "[::1]".
  std::string bare_host() const {
    return host.front() == '[' ? host.substr(1, host.size() - 2) : host;
  }
};

ListenAddress ParseListen(const std::string& text) {
  ListenAddress address;
  const size_t colon = text.rfind(':');
  address.host = absl::AsciiStrToLower(text.substr(0, colon));
  if (absl::StartsWith(text, "unix:") || !ValidateAddress(text).ok() ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port)) {
    throw CLI::ValidationError("--listen",
                               absl::StrCat("\"", text, "\" is no HOST:PORT"));
  }
  // Regardless of /etc/hosts: RFC 6761.
  if (address.host == "localhost") address.host = "127.0.0.1";
  return address;
}

void CheckConsole(const ConsoleArguments& arguments) {
  const ListenAddress listen = ParseListen(arguments.listen);
  if (arguments.certificate_file.empty() != arguments.key_file.empty()) {
    throw CLI::ValidationError("--tls-certificate",
                               "needs --tls-key, and the other way round");
  }
  if (IsLocalAddress(arguments.listen)) return;
  if (!arguments.tls()) {
    throw CLI::ValidationError(
        "--listen",
        absl::StrCat(arguments.listen,
                     " is reached from other machines, which takes TLS: give "
                     "--tls-certificate and --tls-key, or listen on 127.0.0.1 "
                     "and reach it through ssh -L"));
  }
  if (listen.is_any() && arguments.hosts.empty()) {
    throw CLI::ValidationError(
        "--listen", absl::StrCat(arguments.listen,
                                 " needs --host, the name under which browsers "
                                 "reach the console"));
  }
}

std::vector<std::string> AllowedHosts(const ConsoleArguments& arguments,
                                      const ListenAddress& listen) {
  std::vector<std::string> hosts = {"127.0.0.1", "localhost", "[::1]"};
  hosts.push_back(listen.host);
  for (const std::string& host : arguments.hosts) {
    hosts.push_back(absl::AsciiStrToLower(host));
  }
  return hosts;
}

absl::StatusOr<std::string> LoginToken(const std::string& file) {
  if (file.empty()) {
    std::array<unsigned char, kLoginTokenBytes> bytes;
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) {
      return absl::InternalError("the system has no random numbers");
    }
    return absl::WebSafeBase64Escape(absl::string_view(
        reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  absl::StatusOr<std::string> text = ReadFile(file, kMaxLoginToken + 2);
  if (!text.ok()) return text.status();
  const std::string token(absl::StripAsciiWhitespace(*text));
  if (token.size() < kMinLoginToken || token.size() > kMaxLoginToken ||
      !absl::c_all_of(token, absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": a login token has ", kMinLoginToken, " to ",
                     kMaxLoginToken, " characters of ASCII, without spaces"));
  }
  return token;
}

// Has the user's browser open the console, as long as it lives. Through a file
// that no other user may read: a program's arguments everyone may.
class OpenPage {
 public:
  explicit OpenPage(const std::string& url) {
    const char* directory = std::getenv("XDG_RUNTIME_DIR");
    path_ = absl::StrCat(directory == nullptr ? "/tmp" : directory,
                         "/timecachectl-console-XXXXXX.html");
    const int fd = mkstemps(path_.data(), sizeof(".html") - 1);
    const std::string page = absl::StrCat(
        "<!doctype html><meta http-equiv=refresh content=\"0;url=", url, "\">");
    const bool written = fd >= 0 && write(fd, page.data(), page.size()) ==
                                        static_cast<ssize_t>(page.size());
    if (fd >= 0) close(fd);
    ShellCommand open(
        "command -v xdg-open >/dev/null && "
        "{ xdg-open \"$TIMECACHED_PAGE\" >/dev/null 2>&1 & }");
    const auto exit = open.Run("", {{"TIMECACHED_PAGE", path_}});
    if (!written || !exit.ok() || exit->code != 0) {
      Warn("no browser can be started here: open the address in one");
    }
  }
  ~OpenPage() { unlink(path_.c_str()); }
  OpenPage(const OpenPage&) = delete;
  OpenPage& operator=(const OpenPage&) = delete;

 private:
  std::string path_;
};

int RunConsole(const Context& context, const ConsoleArguments& arguments) {
  InterruptHandler::Hold();
  const ListenAddress listen = ParseListen(arguments.listen);
  const std::string token = LoginToken(arguments.login_token_file).value();
  const RpcBridge bridge(context.MakeClient(), context.timeout,
                         arguments.read_only);
  const RequestGuard guard(AllowedHosts(arguments, listen), token);
  HttpFront front(&guard, &bridge);
  const Json about = {{"address", context.address},
                      {"context", context.name},
                      {"readOnly", arguments.read_only},
                      {"version", TIMECACHED_VERSION}};
  const absl::Status started =
      front.Start({.host = listen.bare_host(),
                   .port = listen.port,
                   .certificate_file = arguments.certificate_file,
                   .key_file = arguments.key_file,
                   .about = about.dump()});
  if (!started.ok()) return context.Fail(started);

  std::string url =
      absl::StrCat(arguments.tls() ? "https://" : "http://",
                   listen.is_any() ? arguments.hosts.front() : listen.host, ":",
                   front.port(), "/");
  // One that the user keeps in a file must not get into a log.
  if (arguments.login_token_file.empty()) {
    absl::StrAppend(&url, "#token=", token);
  }
  std::printf("%s\n", context.json ? Json({{"url", url}}).dump().c_str()
                                   : absl::StrCat("The console of ",
                                                  context.address, ": ", url)
                                         .c_str());
  if (std::fflush(stdout) != 0) return context.FailToWrite();

  std::optional<OpenPage> page;
  if (arguments.open) page.emplace(url);

  absl::Notification interrupted;
  const InterruptHandler on_interrupt([&interrupted] {
    if (!interrupted.HasBeenNotified()) interrupted.Notify();
  });
  interrupted.WaitForNotification();
  return kExitDone;
}

}  // namespace

void AddConsoleCommand(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ConsoleArguments>();
  CLI::App* console = app.add_subcommand(
      "console", "Serve a page that shows the server in the browser");
  console
      ->add_option("--listen", arguments->listen,
                   "Where browsers find it; port 0: any that is free")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  console->add_flag("--read-only", arguments->read_only,
                    "Refuse the calls that change something");
  console->add_flag("--open", arguments->open,
                    "Open it in the browser, by xdg-open");
  console
      ->add_option("--host", arguments->hosts,
                   "A name under which browsers may reach it, beside those "
                   "of loopback and --listen's; as often as wanted")
      ->type_name("NAME")
      ->allow_extra_args(false);
  console
      ->add_option("--tls-certificate", arguments->certificate_file,
                   "The console's certificate, PEM; --listen beyond "
                   "loopback needs it")
      ->type_name("FILE");
  console->add_option("--tls-key", arguments->key_file, "Its private key, PEM")
      ->type_name("FILE");
  console
      ->add_option("--login-token-file", arguments->login_token_file,
                   "Holds the token that users log in with (a new one for "
                   "each start, which is printed)")
      ->type_name("FILE");
  console->footer(
      "The page makes its calls as this command does, with its address and "
      "its\n"
      "credentials: who has the printed link may do what you may.\n\n"
      "Examples:\n"
      "  timecachectl console --open\n"
      "  timecachectl --context production console --read-only\n"
      "  timecachectl console --listen 0.0.0.0:7173 --host console.example.com "
      "\\\n"
      "    --tls-certificate tls.crt --tls-key tls.key");
  OnRun(console, context, arguments, RunConsole, CheckConsole);
}

}  // namespace timecache::cli
