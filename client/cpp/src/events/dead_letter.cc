#include "timecache/dead_letter.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cpp/src/data/convert.h"

namespace timecache {
namespace {

// What a letter's key says: "<namespace>/<group>/<event id>".
struct LetterKey {
  absl::string_view ns;
  absl::string_view group;
  uint64_t event_id = 0;
};

std::optional<LetterKey> ParseKey(absl::string_view key) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  LetterKey parsed;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[2], &parsed.event_id)) {
    return std::nullopt;
  }
  parsed.ns = parts[0];
  parsed.group = parts[1];
  return parsed;
}

// Numbered as in the proto.
DeadLetterReason ReasonFromProto(v1::DeadLetterReason reason) {
  return v1::DeadLetterReason_IsValid(reason)
             ? static_cast<DeadLetterReason>(reason)
             : DeadLetterReason::kUnknown;
}

absl::Status NoLetter(const Entry& entry, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(entry.key, " is no dead letter: ", why));
}

}  // namespace

absl::StatusOr<DeadLetter> DecodeDeadLetter(const Entry& entry) {
  v1::ExpiredEvent event;
  if (entry.parts || !event.ParseFromString(entry.value) ||
      event.namespace_().empty() || event.key().empty()) {
    return NoLetter(entry, "its value is no event");
  }
  const std::optional<LetterKey> key = ParseKey(entry.key);
  if (!event.has_dead_letter() && (!key || key->ns != event.namespace_())) {
    return NoLetter(entry, "its key is not <namespace>/<group>/<event id>");
  }
  DeadLetter letter;
  if (event.has_dead_letter()) {
    const v1::DeadLetter& proto = event.dead_letter();
    letter.group = proto.group();
    letter.attempts = proto.attempts();
    letter.reason = ReasonFromProto(proto.reason());
    letter.time = FromProto(proto.time());
    letter.reason_text = proto.reason_text();
  } else {
    letter.group = std::string(key->group);
    letter.attempts = event.attempt();
    letter.time = entry.put_time;
  }
  if (event.event_id() == 0 && key) event.set_event_id(key->event_id);
  letter.event = FromProto(std::move(event));
  return letter;
}

}  // namespace timecache
