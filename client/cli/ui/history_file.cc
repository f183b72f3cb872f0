#include "client/cli/ui/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

namespace timecache::cli {
namespace {

void WriteLines(const std::string& path, int flags, const std::string& lines) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (fd < 0) return;
  // What is missing of it is missed.
  const ssize_t written = write(fd, lines.data(), lines.size());
  static_cast<void>(written);
  close(fd);
}

}  // namespace

HistoryFile::HistoryFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty()) lines_.push_back(line);
  }
  if (lines_.size() <= kMaxLines) return;
  lines_.erase(lines_.begin(),
               lines_.end() - static_cast<std::ptrdiff_t>(kMaxLines));
  Rewrite();
}

void HistoryFile::Add(const std::string& line) {
  if (line.empty() || line.front() == ' ' || line.size() > kMaxLineBytes ||
      (!lines_.empty() && lines_.back() == line)) {
    return;
  }
  lines_.push_back(line);
  if (lines_.size() <= kMaxLines) {
    if (!path_.empty()) WriteLines(path_, O_APPEND, line + "\n");
    return;
  }
  lines_.erase(lines_.begin());
  Rewrite();
}

void HistoryFile::Rewrite() const {
  if (path_.empty()) return;
  std::string all;
  for (const std::string& line : lines_) all += line + "\n";
  // By a rename: a program that reads it sees one or the other.
  const std::string next = path_ + "." + std::to_string(getpid());
  WriteLines(next, O_TRUNC, all);
  if (std::rename(next.c_str(), path_.c_str()) != 0) unlink(next.c_str());
}

}  // namespace timecache::cli
