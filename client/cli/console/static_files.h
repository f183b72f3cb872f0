// The files of the page, which the build embeds: embed.cmake.

#ifndef TIMECACHED_CLIENT_CLI_CONSOLE_STATIC_FILES_H_
#define TIMECACHED_CLIENT_CLI_CONSOLE_STATIC_FILES_H_

#include <map>
#include <string>
#include <string_view>

namespace timecache::cli {

// By their paths below page/: "/index.html", "/views/tape.js".
const std::map<std::string, std::string_view>& StaticFiles();

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_CONSOLE_STATIC_FILES_H_
