#include "client/cli/ui/journal_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"

namespace timecache::cli {
namespace {

using server::JournalReport;

std::string RecordsText(uint64_t records) {
  return absl::StrCat(CountText(records),
                      records == 1 ? " record" : " records");
}

// Of a damaged journal. What stood at its end may be missing without a trace.
std::string LostText(const JournalReport& report) {
  return report.Lost() == 0
             ? "some may be lost"
             : absl::StrCat("at least ", CountText(report.Lost()), " lost");
}

void AppendLostPartitions(const JournalReport& report, std::string* text) {
  for (size_t p = 0; p < report.partitions.size(); ++p) {
    const JournalReport::Partition& partition = report.partitions[p];
    if (report.Lost(partition) == 0) continue;
    absl::StrAppend(text, "partition ", p, ": ",
                    CountText(report.Lost(partition)), " of positions ",
                    CountText(partition.first), " to ",
                    CountText(partition.end), " lost\n");
  }
}

}  // namespace

Json ToJson(const std::string& directory, const JournalReport& report) {
  Json object = {{"journal", directory},
                 {"intact", report.intact},
                 {"torn_tail", report.HasTornTail()},
                 {"records", report.Records()},
                 {"lost", report.Lost()}};
  if (!report.damage.empty()) object["damage"] = report.damage;
  object["partitions"] = Json::array();
  for (const JournalReport::Partition& partition : report.partitions) {
    object["partitions"].push_back({{"first", partition.first},
                                    {"end", partition.end},
                                    {"records", partition.records},
                                    {"lost", report.Lost(partition)}});
  }
  object["files"] = Json::array();
  for (const JournalReport::File& file : report.files) {
    Json each = {{"path", file.path},
                 {"bytes", file.bytes},
                 {"readable_bytes", file.readable_bytes}};
    if (!file.damage.empty()) each["damage"] = file.damage;
    object["files"].push_back(std::move(each));
  }
  return object;
}

std::string Describe(const std::string& directory,
                     const JournalReport& report) {
  uint64_t bytes = 0;
  for (const JournalReport::File& file : report.files) bytes += file.bytes;
  std::string text =
      report.intact
          ? absl::StrCat(directory, ": intact: ", RecordsText(report.Records()),
                         " in ", report.partitions.size(), " partitions and ",
                         report.files.size(), " files of ", SizeText(bytes))
          : absl::StrCat(directory,
                         ": damaged: ", RecordsText(report.Records()),
                         " readable, ", LostText(report));
  absl::StrAppend(&text, "\n");
  for (const JournalReport::File& file : report.files) {
    if (file.damage.empty()) continue;
    absl::StrAppend(&text, file.path, ": ", file.damage, "; ",
                    CountText(file.readable_bytes), " of ",
                    CountText(file.bytes), " bytes readable\n");
  }
  if (!report.damage.empty()) absl::StrAppend(&text, report.damage, "\n");
  AppendLostPartitions(report, &text);
  if (!report.intact) {
    absl::StrAppend(&text,
                    "A server does not start with it. Restore a backup, or "
                    "copy what is readable:\n  timecachectl journal salvage ",
                    directory, " ", directory, ".salvaged\n");
  } else if (report.HasTornTail()) {
    absl::StrAppend(&text,
                    "A crash cut the last write short: the server that opens "
                    "the journal cuts it off.\n");
  }
  text.pop_back();
  return text;
}

std::string DescribeSalvage(const std::string& directory, const std::string& to,
                            const JournalReport& report) {
  std::string text = absl::StrCat(
      "copied ", RecordsText(report.Records()), " of ", directory, " to ", to,
      ": ", report.intact ? "none is lost" : LostText(report), "\n");
  AppendLostPartitions(report, &text);
  absl::StrAppend(&text, "Keep ", directory,
                  " until a server has started with the copy.");
  return text;
}

}  // namespace timecache::cli
