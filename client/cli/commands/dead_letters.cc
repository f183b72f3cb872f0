#include "client/cli/commands/dead_letters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/many_operations.h"
#include "client/cli/ui/units.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

absl::Status KeyExists(const ExpiredEvent& event) {
  return absl::FailedPreconditionError(
      absl::StrCat("its key exists again in namespace ", event.ns,
                   ": replace that with --overwrite"));
}

absl::Status PutBackParts(const Client& into, const ExpiredEvent& event,
                          const GatherOptions& options) {
  ManyOperations gathers(into, [](size_t, const OperationResult& result) {
    return result.status;
  });
  for (const GatheredPart& part : event.parts->parts) {
    const absl::Status status = gathers.Add(
        Operation::Gather(event.key, part.name, part.value, options));
    if (!status.ok()) return status;
  }
  return gathers.Finish();
}

}  // namespace

std::string DeadLetterFilter::Prefix() const {
  if (ns.empty()) return "";
  return group.empty() ? absl::StrCat(ns, "/")
                       : absl::StrCat(ns, "/", group, "/");
}

std::string DeadLetterFilter::Text() const {
  std::string text = "dead letters";
  if (!group.empty()) absl::StrAppend(&text, " of group ", group);
  if (!ns.empty()) absl::StrAppend(&text, " from namespace ", ns);
  return text;
}

absl::Status VisitDeadLetters(
    const Context& context, const Client& client,
    const DeadLetterFilter& filter,
    absl::FunctionRef<bool(const Entry& entry, const DeadLetter& letter)> visit,
    DeadLetterWalk* walk) {
  ScanOptions options = {.key_prefix = filter.Prefix()};
  if (context.timeout_given) options.timeout = context.timeout;
  return client.Scan(options, [&](const Entry& entry) {
    const absl::StatusOr<DeadLetter> letter = DecodeDeadLetter(entry);
    if (!letter.ok()) {
      ++walk->others;
      return true;
    }
    if (!filter.group.empty() && letter->group != filter.group) return true;
    ++walk->letters;
    return visit(entry, *letter);
  });
}

absl::Status PutBackEvent(const Client& client, const ExpiredEvent& event,
                          const PutBackOptions& options) {
  const Client into = client.In(event.ns);
  const std::optional<absl::Duration> ttl =
      options.ttl ? options.ttl : event.own_ttl;
  if (!event.parts) {
    const absl::Status status =
        into.Put(event.key, event.value,
                 {.ttl = ttl,
                  .condition = options.overwrite ? PutCondition::kAlways
                                                 : PutCondition::kIfAbsent,
                  .traceparent = event.traceparent})
            .status();
    return HasReason(status, ErrorReason::kKeyExists) ? KeyExists(event)
                                                      : status;
  }
  GatherOptions gather = {.ttl = ttl, .traceparent = event.traceparent};
  if (event.parts->expected_names.empty()) {
    gather.expected_parts = event.parts->expected_parts;
  } else {
    gather.expected_names = event.parts->expected_names;
  }
  if (options.overwrite) {
    const auto removed = into.Remove(event.key);
    if (!removed.ok()) return removed.status();
  } else {
    const auto exists = into.Contains(event.key);
    if (!exists.ok()) return exists.status();
    if (*exists) return KeyExists(event);
  }
  return PutBackParts(into, event, gather);
}

absl::Status RemoveLetter(const Client& client, const Entry& entry) {
  return client.Remove(entry.key, {.if_version = entry.version}).status();
}

Json ToJson(const Entry& entry, const DeadLetter& letter,
            const Encodings& encodings) {
  Json object;
  SetBytes(object, "letter", entry.key, encodings.key);
  object["group"] = letter.group;
  object["attempts"] = letter.attempts;
  object["reason"] = letter.reason == DeadLetterReason::kUnknown
                         ? Json()
                         : Json(NameOf(letter.reason));
  if (!letter.reason_text.empty()) object["reason_text"] = letter.reason_text;
  object["time"] = ExactTimeText(letter.time);
  object["event"] = ToJson(letter.event, encodings, /*keys_only=*/false);
  return object;
}

std::string LineText(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings) {
  const bool has_reason = letter.reason != DeadLetterReason::kUnknown;
  return absl::StrCat(TimeText(letter.time), "\t",
                      has_reason ? NameOf(letter.reason) : "-", "\t",
                      letter.attempts, "\t", Encode(entry.key, encodings.key),
                      "\t", Encode(letter.event.key, encodings.key));
}

std::string Describe(const Entry& entry, const DeadLetter& letter,
                     const Encodings& encodings) {
  const ExpiredEvent& event = letter.event;
  return Columns(
      {{"letter", Encode(entry.key, encodings.key)},
       {"made", TimeText(letter.time)},
       {"expires", TimeText(entry.deadline)},
       {"group", letter.group},
       {"attempts", absl::StrCat(letter.attempts)},
       {"last attempt",
        letter.reason_text.empty()
            ? NameOf(letter.reason)
            : absl::StrCat(NameOf(letter.reason), ": ", letter.reason_text)},
       {"namespace", event.ns},
       {"key", Encode(event.key, encodings.key)},
       {"cause", NameOf(event.cause)},
       {"put", TimeText(event.put_time)},
       {"deadline", TimeText(event.deadline)},
       {"died", TimeText(event.death_time)},
       {"own ttl", event.own_ttl ? DurationText(*event.own_ttl) : "none"},
       {"version", absl::StrCat(event.version)},
       {"traceparent", event.traceparent.empty() ? "none" : event.traceparent},
       {event.parts ? "parts" : "value", ValueText(event, encodings.value)}});
}

}  // namespace timecache::cli
