#ifndef TIMECACHED_SERVER_BASE_VERSION_H_
#define TIMECACHED_SERVER_BASE_VERSION_H_

#include <string_view>

namespace timecache {

// This server's version, "0.1.0". Thread-safe.
std::string_view Version();

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_VERSION_H_
