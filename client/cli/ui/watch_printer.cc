#include "client/cli/ui/watch_printer.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {

WatchPrinter::WatchPrinter(const Context& context,
                           const WatchArguments& arguments,
                           const std::vector<std::string>& namespaces)
    : context_(context), arguments_(arguments) {
  for (const std::string& ns : namespaces) {
    watermarks_[ns] = absl::InfinitePast();
  }
}

bool WatchPrinter::Print(const WatchBatch& batch) {
  in_break_ = false;
  bool written = true;
  if (batch.log_changed) {
    written = PrintLogChanged(batch);
  } else if (batch.reconnected) {
    written = PrintReconnected(batch);
  }
  if (batch.lost > 0) written = written && PrintLost(batch);
  if (batch.omitted_values > 0) {
    Warn(absl::StrCat(batch.ns, ": ", CountText(batch.omitted_values),
                      " events are without their values, which are larger than "
                      "this connection accepts"));
  }
  printed_of_batch_ = 0;
  written = written && PrintEvents(batch.events) && PrintEvents(batch.changes);
  if (arguments_.watermarks) written = written && PrintWatermark(batch);
  watermarks_[batch.ns] = batch.watermark;
  return written && Flush();
}

template <typename Event>
bool WatchPrinter::PrintEvents(const std::vector<Event>& events) {
  const bool to_its_end = !arguments_.resume_file.empty();
  for (const Event& event : events) {
    if (!to_its_end && arguments_.count > 0 && printed_ == arguments_.count) {
      break;
    }
    ++printed_;
    ++printed_of_batch_;
    if (!PrintEvent(event)) return false;
  }
  return true;
}

bool WatchPrinter::IsDone() const {
  if (arguments_.count > 0 && printed_ >= arguments_.count) return true;
  if (!arguments_.until) return false;
  for (const auto& [ns, watermark] : watermarks_) {
    if (watermark < *arguments_.until) return false;
  }
  return true;
}

void WatchPrinter::PrintBreak(const absl::Status& why) {
  if (std::exchange(in_break_, true)) return;
  Warn(context_.ExplainBreak(why));
}

bool WatchPrinter::PrintEvent(const ExpiredEvent& event) {
  if (context_.json) {
    Json object = ToJson(event, context_.encodings, arguments_.keys_only);
    if (arguments_.delivery_tokens) {
      object["delivery_token"] = absl::Base64Escape(event.delivery_token);
    }
    return WriteJson(object);
  }
  const absl::Duration late =
      absl::Trunc(event.delivered_at - event.death_time, absl::Microseconds(1));
  std::string line =
      absl::StrCat(TimeText(event.death_time), "\t", NameOf(event.cause),
                   late < absl::ZeroDuration() ? "\t" : "\t+",
                   absl::FormatDuration(late), "\t");
  if (watermarks_.size() > 1) absl::StrAppend(&line, event.ns, "\t");
  absl::StrAppend(&line, Encode(event.key, context_.encodings.key));
  if (!arguments_.keys_only) {
    absl::StrAppend(&line, "\t", ValueText(event, context_.encodings.value));
  }
  return WriteLine(line);
}

bool WatchPrinter::PrintEvent(const ChangeEvent& change) {
  if (context_.json) {
    return WriteJson(ToJson(change, context_.encodings, arguments_.keys_only));
  }
  std::string line =
      absl::StrCat(TimeText(change.time), "\t", NameOf(change.kind), "\t");
  if (watermarks_.size() > 1) absl::StrAppend(&line, change.ns, "\t");
  absl::StrAppend(&line, Encode(change.key, context_.encodings.key));
  if (!arguments_.keys_only && change.kind == ChangeKind::kPut) {
    absl::StrAppend(&line, "\t", ValueText(change, context_.encodings.value));
  }
  return WriteLine(line);
}

bool WatchPrinter::PrintWatermark(const WatchBatch& batch) {
  if (context_.json) {
    return WriteJson(Json{{"type", "watermark"},
                          {"namespace", batch.ns},
                          {"watermark", ExactTimeText(batch.watermark)}});
  }
  return WriteLine(
      absl::StrCat(TimeText(batch.watermark), "\twatermark\t", batch.ns));
}

bool WatchPrinter::PrintLost(const WatchBatch& batch) {
  const bool shared = !arguments_.group.empty();
  const std::string option =
      arguments_.changes ? "--change-retention" : "--event-retention";
  Warn(absl::StrCat(
      batch.ns, ": ", CountText(batch.lost),
      arguments_.changes ? " changes lost: " : " events lost: ",
      shared
          ? "the group was too slow, raise its --max-backlog-bytes (ns "
            "group-update)"
          : absl::StrCat("this watch read too slowly or was disconnected for "
                         "too long, raise the namespace's ",
                         option, " and ", option, "-bytes (ns update)")));
  return !context_.json ||
         WriteJson(Json{
             {"type", "lost"}, {"namespace", batch.ns}, {"lost", batch.lost}});
}

bool WatchPrinter::PrintReconnected(const WatchBatch& batch) {
  Warn(absl::StrCat(batch.ns, ": reconnected"));
  return !context_.json ||
         WriteJson(Json{{"type", "reconnected"}, {"namespace", batch.ns}});
}

bool WatchPrinter::PrintLogChanged(const WatchBatch& batch) {
  const bool known = batch.missed_after != absl::InfinitePast();
  Warn(absl::StrCat(
      batch.ns,
      ": the log has changed: the server was restarted, or the namespace was "
      "deleted and created again. The undelivered events of the old log",
      known ? absl::StrCat(arguments_.changes ? ", of changes after "
                                              : ", of deaths after ",
                           TimeText(batch.missed_after))
            : "",
      ", are lost; their number is unknown. Continuing with the oldest event "
      "of the new log"));
  if (!context_.json) return true;
  Json object = {{"type", "log_changed"},
                 {"namespace", batch.ns},
                 {"missed_after", nullptr}};
  if (known) object["missed_after"] = ExactTimeText(batch.missed_after);
  return WriteJson(object);
}

}  // namespace timecache::cli
