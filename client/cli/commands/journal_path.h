// Directories of journals, as the command line has them.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_JOURNAL_PATH_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_JOURNAL_PATH_H_

#include <string>

namespace timecache::cli {

// Without the slashes that a shell's completion leaves at its end.
inline std::string TrimmedPath(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory;
}

// Where its name is.
inline std::string ParentOf(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  if (slash == directory.npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_JOURNAL_PATH_H_
