// A dead letter on the screen.

#ifndef TIMECACHED_CLIENT_CLI_UI_DEAD_LETTER_TEXT_H_
#define TIMECACHED_CLIENT_CLI_UI_DEAD_LETTER_TEXT_H_

#include <string>

#include "client/cli/ui/bytes.h"
#include "client/cli/ui/output.h"
#include "timecache/dead_letter.h"
#include "timecache/types.h"

namespace timecache::cli {

// {"letter":KEY,"group":..,"attempts":..,"reason":..,"time":..,"event":{..}};
// the reason is null in a letter that does not say it.
Json ToJson(const Entry& entry, const DeadLetter& letter,
            const Encodings& encodings);

// TIME, reason, attempts, the letter's key, the entry's key, tab-separated.
std::string LineText(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings);

// All of it, a field a line, the value last.
std::string Describe(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_DEAD_LETTER_TEXT_H_
