// The flag that both programs have.

#ifndef TIMECACHED_CLIENT_EXAMPLES_TTL_FLAG_H_
#define TIMECACHED_CLIENT_EXAMPLES_TTL_FLAG_H_

#include <functional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"

namespace timecache::sessionize {

// Adds --ttl, a duration such as 90s, 1h30m or 1.5h.
inline void AddTtl(CLI::App& app, std::function<void(absl::Duration)> set,
                   const std::string& help) {
  app.add_option_function<std::string>(
         "--ttl",
         [set = std::move(set)](const std::string& text) {
           absl::Duration ttl;
           if (!absl::ParseDuration(text, &ttl)) {
             throw CLI::ValidationError(
                 "--ttl",
                 "\"" + text + "\" is no duration: write 90s or 1h30m");
           }
           set(ttl);
         },
         help)
      ->type_name("DURATION");
}

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_TTL_FLAG_H_
