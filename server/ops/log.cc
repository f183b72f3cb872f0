#include "server/ops/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "server/ops/log_sink.h"

namespace timecache::server {
namespace {

std::atomic<LogFormat> log_format{LogFormat::kText};
std::atomic<LogLevel> log_level{LogLevel::kInfo};

// Never destroyed: a thread may log while the process ends.
LogSink& StandardError() {
  static auto& sink = *new LogSink(STDERR_FILENO, [](uint64_t dropped) {
    return FormatLogLine(log_format, absl::Now(), LogLevel::kWarning,
                         "log_lines_dropped", {{"lines", dropped}});
  });
  return sink;
}

const char* LevelName(LogLevel level) {
  constexpr const char* kNames[] = {"debug", "info", "warn", "error"};
  return kNames[static_cast<size_t>(level)];
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// Cuts a string that is too long; other values pass.
nlohmann::ordered_json ToJson(const LogValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>,
                                     std::string_view>) {
          if (v.size() <= kMaxLogValueBytes) return std::string(v);
          return std::string(v.substr(0, kMaxLogValueBytes)) + "...";
        } else if constexpr (std::is_same_v<std::decay_t<decltype(v)>,
                                            LogJson>) {
          auto json = nlohmann::ordered_json::parse(v.text, nullptr,
                                                    /*allow_exceptions=*/false);
          if (json.is_object()) return json;
          return std::string(v.text);
        } else {
          return v;
        }
      },
      value.value());
}

// Only ASCII, so that no value can control the terminal on which a log is read.
std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace);
}

bool NeedsNoQuotes(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isgraph(c) && c != '"' && c != '\\' && c != '=';
  });
}

std::string TextValue(const LogValue& value) {
  const nlohmann::ordered_json json = ToJson(value);
  if (json.is_string() && NeedsNoQuotes(json.get_ref<const std::string&>())) {
    return json.get<std::string>();
  }
  return Dump(json);
}

}  // namespace

void SetLogging(LogLevel least_level, LogFormat format) {
  log_format = format;
  log_level = least_level;
}

uint64_t DroppedLogLines() { return StandardError().dropped(); }

void Log(LogLevel level, std::string_view event, LogFields fields) {
  if (level < log_level) return;
  StandardError().Write(
      FormatLogLine(log_format, absl::Now(), level, event, fields));
}

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view event, LogFields fields) {
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json json = {{"time", TimeText(time)},
                                   {"level", LevelName(level)},
                                   {"event", event}};
    for (const LogField& field : fields) {
      json[std::string(field.key)] = ToJson(field.value);
    }
    return Dump(json);
  }
  std::string line = absl::StrFormat("%s %-5s %s", TimeText(time),
                                     LevelName(level), std::string(event));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", std::string(field.key), "=",
                    TextValue(field.value));
  }
  return line;
}

}  // namespace timecache::server
