#include "server/base/version.h"

namespace timecache {

std::string_view Version() { return TIMECACHED_VERSION; }

}  // namespace timecache
