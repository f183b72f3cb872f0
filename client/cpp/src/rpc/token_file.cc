#include "client/cpp/src/rpc/token_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/read_file.h"

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
  const FileState state = StateOf(path);
  absl::StatusOr<std::string> token = ReadToken(path);
  if (!token.ok()) return token.status();
  return std::unique_ptr<TokenFile>(
      new TokenFile(path, *std::move(token), state));
}

TokenFile::TokenFile(std::string path, std::string token,
                     const FileState& state)
    : path_(std::move(path)),
      token_(std::move(token)),
      read_(absl::Now()),
      state_(state) {}

TokenFile::FileState TokenFile::StateOf(const std::string& path) {
  struct stat now = {};
  if (stat(path.c_str(), &now) != 0) return {};
  return {static_cast<int64_t>(now.st_dev), static_cast<int64_t>(now.st_ino),
          now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
}

std::string TokenFile::Token() {
  absl::MutexLock lock(&mu_);
  const absl::Time now = absl::Now();
  const FileState state = StateOf(path_);
  // Also when the system clock was set back. Without checking the time, a file
  // that is rewritten within a tick of the file system's clock would go
  // unnoticed.
  if (state != state_ || now < read_ || now - read_ >= kInterval) {
    read_ = now;
    state_ = state;
    absl::StatusOr<std::string> token = ReadToken(path_);
    if (token.ok()) token_ = *std::move(token);
  }
  return token_;
}

}  // namespace timecache
