#include "tests/examples/reference_sessions.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>

namespace timecache {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
// Longer lines are malformed.
constexpr size_t kMaxLineBytes = 65'536;

struct Request {
  std::string visitor;
  int64_t time_s = 0;
  uint64_t bytes = 0;
};

struct Open {
  int64_t first_s = 0;
  int64_t last_s = 0;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  int64_t death_us = 0;
};

// The fields of a line, the whole of it being the first.
enum Field {
  kWhole,
  kVisitor,
  kDay,
  kMonth,
  kYear,
  kHour,
  kMinute,
  kSecond,
  kSign,
  kOffsetHours,
  kOffsetMinutes,
  kInsideRequest,
  kBytes,
  kFieldCount,
};
using Fields = std::array<std::string, kFieldCount>;

constexpr char kLineExpression[] =
    R"re(^([^ ]+) [^ ]+ [^ ][^[]* )re"
    R"re(\[([0-9]{2})/([A-Za-z]{3})/([0-9]{4}):([0-9]{2}):([0-9]{2}):)re"
    R"re(([0-9]{2}) ([+-])([0-9]{2})([0-9]{2})\] )re"
    R"re("([^"\]|\\.)*" [0-9]{3} ([0-9]{1,19}|-)( |$))re";

regex_t Compile() {
  regex_t compiled;
  if (regcomp(&compiled, kLineExpression, REG_EXTENDED) != 0) std::abort();
  return compiled;
}

std::optional<Fields> Match(const std::string& line) {
  static const regex_t kLine = Compile();
  regmatch_t matches[kFieldCount];
  if (regexec(&kLine, line.c_str(), kFieldCount, matches, 0) != 0) {
    return std::nullopt;
  }
  Fields fields;
  for (int i = 0; i < kFieldCount; ++i) {
    if (matches[i].rm_so < 0) continue;
    fields[i] =
        line.substr(matches[i].rm_so, matches[i].rm_eo - matches[i].rm_so);
  }
  return fields;
}

std::optional<int64_t> TimeOf(const Fields& fields) {
  static constexpr std::string_view kMonths =
      "JanFebMarAprMayJunJulAugSepOctNovDec";
  const size_t month = kMonths.find(fields[kMonth]);
  if (month == kMonths.npos || month % 3 != 0) return std::nullopt;
  std::tm civil = {};
  civil.tm_mday = std::stoi(fields[kDay]);
  civil.tm_mon = static_cast<int>(month) / 3;
  civil.tm_year = std::stoi(fields[kYear]) - 1900;
  civil.tm_hour = std::stoi(fields[kHour]);
  civil.tm_min = std::stoi(fields[kMinute]);
  const std::tm asked = civil;
  const int64_t minute_s = timegm(&civil);
  if (civil.tm_mday != asked.tm_mday || civil.tm_hour != asked.tm_hour ||
      civil.tm_min != asked.tm_min) {
    return std::nullopt;
  }
  const int64_t ahead_s = std::stoi(fields[kOffsetHours]) * 3600 +
                          std::stoi(fields[kOffsetMinutes]) * 60;
  return minute_s + std::stoi(fields[kSecond]) -
         (fields[kSign] == "-" ? -ahead_s : ahead_s);
}

std::optional<Request> Parse(std::string line) {
  if (line.size() > kMaxLineBytes) return std::nullopt;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  const std::optional<Fields> fields = Match(line);
  if (!fields) return std::nullopt;
  const std::optional<int64_t> time_s = TimeOf(*fields);
  if (!time_s) return std::nullopt;
  const std::string& bytes = (*fields)[kBytes];
  return Request{.visitor = (*fields)[kVisitor],
                 .time_s = *time_s,
                 .bytes = bytes == "-" ? 0 : std::stoull(bytes)};
}

std::string TimeText(int64_t time_us) {
  const std::time_t time_s = time_us / kSecondUs;
  std::tm civil = {};
  gmtime_r(&time_s, &civil);
  char text[64];
  size_t length =
      std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &civil);
  if (const int64_t us = time_us % kSecondUs; us != 0) {
    length += std::snprintf(text + length, sizeof(text) - length, ".%06d",
                            static_cast<int>(us));
  }
  return std::string(text, length) + "Z";
}

ReferenceSession End(const std::string& visitor, const Open& open) {
  return {open.death_us,
          "{\"visitor\":\"" + visitor + "\",\"first\":\"" +
              TimeText(open.first_s * kSecondUs) + "\",\"last\":\"" +
              TimeText(open.last_s * kSecondUs) +
              "\",\"requests\":" + std::to_string(open.requests) +
              ",\"bytes\":" + std::to_string(open.bytes) + ",\"ended_at\":\"" +
              TimeText(open.death_us) + "\"}"};
}

}  // namespace

ReferenceResult ComputeReference(std::string_view log, int64_t ttl_us,
                                 int64_t num_buckets) {
  const int64_t width_us = ttl_us / (num_buckets - 1);
  ReferenceResult result;
  std::map<std::string, Open> live;
  int64_t clock_us = 0;
  while (!log.empty()) {
    const std::string line(log.substr(0, log.find('\n')));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    const std::optional<Request> request = Parse(line);
    if (!request) {
      ++result.malformed;
      continue;
    }
    clock_us = std::max(clock_us, request->time_s * kSecondUs);
    Open& open = live[request->visitor];
    if (open.requests > 0 && clock_us >= open.death_us) {
      result.sessions.push_back(End(request->visitor, open));
      open = {};
    }
    if (open.requests++ == 0) open.first_s = open.last_s = request->time_s;
    open.first_s = std::min(open.first_s, request->time_s);
    open.last_s = std::max(open.last_s, request->time_s);
    open.bytes += request->bytes;
    open.death_us = (clock_us + ttl_us + width_us - 1) / width_us * width_us;
  }
  for (const auto& [visitor, open] : live) {
    result.sessions.push_back(End(visitor, open));
  }
  std::stable_sort(result.sessions.begin(), result.sessions.end(),
                   [](const ReferenceSession& a, const ReferenceSession& b) {
                     return a.ended_at_us < b.ended_at_us;
                   });
  return result;
}

}  // namespace timecache
