// What can be read of a journal, for programs and for the eye.

#ifndef TIMECACHED_CLIENT_CLI_UI_JOURNAL_TEXT_H_
#define TIMECACHED_CLIENT_CLI_UI_JOURNAL_TEXT_H_

#include <string>

#include "client/cli/ui/output.h"
#include "server/log/local/journal_tools.h"

namespace timecache::cli {

// {"journal":..,"intact":false,"records":..,"lost":..,"partitions":[..],
// "files":[..]}, with "damage" where the journal, or a file, has some.
Json ToJson(const std::string& directory, const server::JournalReport& report);

// A line for the whole, one for each damaged file and for each partition that
// has lost records, and one that says what to do. The last has no line end.
std::string Describe(const std::string& directory,
                     const server::JournalReport& report);

// What `salvage` has copied to `to`, the same way.
std::string DescribeSalvage(const std::string& directory, const std::string& to,
                            const server::JournalReport& report);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_JOURNAL_TEXT_H_
