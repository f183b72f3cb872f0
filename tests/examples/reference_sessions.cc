#include "tests/examples/reference_sessions.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <regex>

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

std::optional<int64_t> TimeOf(const std::smatch& match) {
  static constexpr std::string_view kMonths =
      "JanFebMarAprMayJunJulAugSepOctNovDec";
  const size_t month = kMonths.find(match[3].str());
  if (month == kMonths.npos || month % 3 != 0) return std::nullopt;
  std::tm civil = {};
  civil.tm_mday = std::stoi(match[2]);
  civil.tm_mon = static_cast<int>(month) / 3;
  civil.tm_year = std::stoi(match[4]) - 1900;
  civil.tm_hour = std::stoi(match[5]);
  civil.tm_min = std::stoi(match[6]);
  const std::tm asked = civil;
  const int64_t minute_s = timegm(&civil);
  if (civil.tm_mday != asked.tm_mday || civil.tm_hour != asked.tm_hour ||
      civil.tm_min != asked.tm_min) {
    return std::nullopt;
  }
  const int64_t ahead_s =
      std::stoi(match[9]) * 3600 + std::stoi(match[10]) * 60;
  return minute_s + std::stoi(match[7]) -
         (match[8] == "-" ? -ahead_s : ahead_s);
}

std::optional<Request> Parse(const std::string& line) {
  static const std::regex kLine(
      R"re((\S+) \S+ \S.* \[(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) )re"
      R"re(([+-])(\d\d)(\d\d)\] "(?:[^"\\]|\\.)*" \d{3} (\d{1,19}|-)(?![^ \r]))re");
  std::smatch match;
  if (line.size() > kMaxLineBytes) return std::nullopt;
  if (!std::regex_search(line, match, kLine,
                         std::regex_constants::match_continuous)) {
    return std::nullopt;
  }
  const std::optional<int64_t> time_s = TimeOf(match);
  if (!time_s) return std::nullopt;
  return Request{.visitor = match[1],
                 .time_s = *time_s,
                 .bytes = match[11] == "-" ? 0 : std::stoull(match[11])};
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
