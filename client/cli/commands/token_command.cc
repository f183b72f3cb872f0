// token: makes the bearer token of a principal, and the line that the server's
// access file knows it by.
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags.h"
#include "client/cli/ui/command_result.h"

namespace timecache::cli {
namespace {

constexpr size_t kTokenBytes = 32;
// The longest that the server takes.
constexpr size_t kMaxTokenBytes = 4096;

std::string Sha256Hex(std::string_view token) {
  std::array<unsigned char, 32> hash = {};
  unsigned int size = 0;
  if (EVP_Digest(token.data(), token.size(), hash.data(), &size, EVP_sha256(),
                 nullptr) != 1) {
    return "";
  }
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(hash.data()), hash.size()));
}

int MakeToken(const Context& context) {
  std::array<unsigned char, kTokenBytes> random = {};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return context.Fail(
        absl::InternalError("the system gave no random bytes: try again"));
  }
  const std::string token = absl::WebSafeBase64Escape(absl::string_view(
      reinterpret_cast<const char*>(random.data()), random.size()));
  const std::string hash = Sha256Hex(token);
  // Not both on standard output, so that `> token` holds the token alone.
  const int code =
      Print(context, {{"token", token}, {"token_sha256", hash}}, token);
  if (!context.json) std::cerr << "token_sha256: [" << hash << "]\n";
  return code;
}

// Of the token on standard input: an argument would be in the shell's history
// and in the list of processes.
int HashToken(const Context& context) {
  std::string text(kMaxTokenBytes + 3, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::cin.gcount()));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  if (token.empty() || token.size() > kMaxTokenBytes) {
    return context.Fail(absl::InvalidArgumentError(absl::StrCat(
        "standard input must be a token of 1 to ", kMaxTokenBytes, " bytes")));
  }
  for (const char c : token) {
    if (!absl::ascii_isalnum(c) &&
        absl::string_view("-._~+/=").find(c) == absl::string_view::npos) {
      return context.Fail(absl::InvalidArgumentError(
          "the token has a character that a server does not take: letters, "
          "digits and -._~+/ it may have, and = at its end"));
    }
  }
  const std::string hash = Sha256Hex({token.data(), token.size()});
  return Print(context, {{"token_sha256", hash}},
               absl::StrCat("token_sha256: [", hash, "]"));
}

}  // namespace

void AddTokenCommand(CLI::App& app, Context& context) {
  auto* token = app.add_subcommand(
      "token", "Generate a bearer token, and its line for the access file");
  const auto only_hash = std::make_shared<bool>(false);
  token->add_flag_callback(
      "--hash", [only_hash] { *only_hash = true; },
      "Only print the line of the token on standard input");
  token->footer(
      R"(Calls no server. The token, 256 random bits, goes to standard output; its line
for a principal in the server's access file, which is not secret, to standard
error.

Examples:
  (umask 077; timecachectl token > token)
  timecachectl token --hash < token)");
  OnRun(token, context, only_hash, [](const Context& on, bool hashes) {
    return hashes ? HashToken(on) : MakeToken(on);
  });
}

}  // namespace timecache::cli
