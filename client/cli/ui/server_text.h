// A server on one screen.

#ifndef TIMECACHED_CLIENT_CLI_UI_SERVER_TEXT_H_
#define TIMECACHED_CLIENT_CLI_UI_SERVER_TEXT_H_

#include <string>

#include "client/cli/server_sample.h"

namespace timecache::cli {

// Rows and columns that no screen has are no limit.
inline constexpr int kAllRows = 1 << 30;
inline constexpr int kAllColumns = 1 << 30;

// Lines without an end of the last: the server, its limits (or that they are
// not shown to this caller), its journal if it has one, a table of namespaces
// one of groups, and one of the hottest keys, if the sample has them. With `before`, rates since then, and the busiest
// namespaces first; else their names in order. `rows`: the most lines; the
// tables then say how much more there is. `columns`: the longest line; then
// columns are left out of the tables, but not rates: names are cut for them.
std::string ServerText(const std::string& address, const ServerSample& sample,
                       const ServerSample* before, int rows = kAllRows,
                       int columns = kAllColumns);

// All that the server reported, and rates with `before`. Its limits are null if
// they are not shown to this caller; its journal also if there is none.
Json ServerJson(const std::string& address, const ServerSample& sample,
                const ServerSample* before);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_SERVER_TEXT_H_
