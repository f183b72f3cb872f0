// Manual pages, generated from a program's flags and commands, so that they
// agree with --help.

#ifndef TIMECACHED_SERVER_BASE_MAN_PAGE_H_
#define TIMECACHED_SERVER_BASE_MAN_PAGE_H_

#include <string>

#include "CLI/App.hpp"

namespace timecache {

struct ManPage {
  std::string name;     // "timecachectl"
  std::string section;  // "1"
  std::string version;  // "0.1.0"
  // One line, after the name.
  std::string summary;
  std::string see_also;
};

// In troff, with the man macros. An "Examples:" in a footer becomes a section
// of the page, or a paragraph of its command. Not thread-safe, as `app` is not.
std::string WriteManPage(const ManPage& page, const CLI::App& app);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_MAN_PAGE_H_
