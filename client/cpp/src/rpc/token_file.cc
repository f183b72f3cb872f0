#include "client/cpp/src/rpc/token_file.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/common/read_file.h"

namespace timecache {
namespace {

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> text =
      ReadFile(path, TokenFile::kMaxFileBytes, FileKind::kAny);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("token file ", text.status().message()));
  }
  std::string token(absl::StripAsciiWhitespace(*text));
  if (token.empty() || token.size() > TokenFile::kMaxTokenBytes ||
      !std::all_of(token.begin(), token.end(),
                   [](char c) { return absl::ascii_isgraph(c); })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "token file ", path, ": must hold one token, of 1 to ",
        TokenFile::kMaxTokenBytes, " graphic characters, and nothing else"));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(
    const std::string& path) {
  absl::StatusOr<std::string> token = ReadToken(path);
  if (!token.ok()) return token.status();
  return std::unique_ptr<TokenFile>(new TokenFile(path, *std::move(token)));
}

TokenFile::TokenFile(std::string path, std::string token)
    : path_(std::move(path)), token_(std::move(token)), read_(absl::Now()) {}

std::string TokenFile::Token() {
  absl::MutexLock lock(&mu_);
  const absl::Time now = absl::Now();
  // Also when the system's clock was set back.
  if (now < read_ || now - read_ >= kInterval) {
    read_ = now;
    absl::StatusOr<std::string> token = ReadToken(path_);
    if (token.ok()) token_ = *std::move(token);
  }
  return token_;
}

}  // namespace timecache
