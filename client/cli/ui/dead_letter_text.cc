#include "client/cli/ui/dead_letter_text.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

// Empty: unknown.
std::string ReasonText(DeadLetterReason reason) {
  switch (reason) {
    case DeadLetterReason::kNacked:
      return "nacked";
    case DeadLetterReason::kTimedOut:
      return "timed-out";
    case DeadLetterReason::kUnknown:
      break;
  }
  return "";
}

}  // namespace

Json ToJson(const Entry& entry, const DeadLetter& letter,
            const Encodings& encodings) {
  Json object;
  SetBytes(object, "letter", entry.key, encodings.key);
  object["group"] = letter.group;
  object["attempts"] = letter.attempts;
  const std::string reason = ReasonText(letter.reason);
  object["reason"] = reason.empty() ? Json() : Json(reason);
  object["time"] = ExactTimeText(letter.time);
  object["event"] = ToJson(letter.event, encodings, /*keys_only=*/false);
  return object;
}

std::string LineText(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings) {
  const std::string reason = ReasonText(letter.reason);
  return absl::StrCat(TimeText(letter.time), "\t",
                      reason.empty() ? "-" : reason, "\t", letter.attempts,
                      "\t", Encode(entry.key, encodings.key), "\t",
                      Encode(letter.event.key, encodings.key));
}

std::string Describe(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings) {
  const ExpiredEvent& event = letter.event;
  const std::string reason = ReasonText(letter.reason);
  const std::vector<std::pair<const char*, std::string>> fields = {
      {"letter", Encode(entry.key, encodings.key)},
      {"made", TimeText(letter.time)},
      {"expires", TimeText(entry.deadline)},
      {"group", letter.group},
      {"attempts", absl::StrCat(letter.attempts)},
      {"last attempt", reason.empty() ? "unknown" : reason},
      {"namespace", event.ns},
      {"key", Encode(event.key, encodings.key)},
      {"cause", std::string(CauseName(event.cause))},
      {"put", TimeText(event.put_time)},
      {"deadline", TimeText(event.deadline)},
      {"died", TimeText(event.death_time)},
      {"own ttl", event.own_ttl ? DurationText(*event.own_ttl) : "none"},
      {"version", absl::StrCat(event.version)},
      {event.parts ? "parts" : "value", ValueText(event, encodings.value)}};
  std::string text;
  for (const auto& [name, value] : fields) {
    absl::StrAppendFormat(&text, "%-17s %s\n", name, value);
  }
  text.pop_back();
  return text;
}

}  // namespace timecache::cli
