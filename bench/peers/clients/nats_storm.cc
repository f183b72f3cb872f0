// A storm on a key-value bucket of NATS: many keys with a TTL of their own, and
// one watcher that tells how late the marker of each expired key comes. NATS
// counts TTLs in whole seconds from each put, so keys do not die at one moment:
// each has a deadline of its own, the time of its put and the TTL. A marker has
// the key and no value.
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/peers/clients/nats_connection.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

constexpr char kBucket[] = "KV_storm";
constexpr char kPrefix[] = "$KV.storm.";
constexpr int kSid = 2;
constexpr uint64_t kFillDepth = 1'000;
constexpr int kPollMs = 100;

struct Arguments {
  int port = 0;
  uint64_t entries = 1'000'000;
  int value_bytes = 64;
  int ttl_s = 15;
  int64_t patience_ms = 120'000;
};

double UnixSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void CreateBucket(NatsConnection* connection) {
  constexpr int64_t kMarkerNs = 600'000'000'000;
  connection->Request(std::string("STREAM.CREATE.") + kBucket,
                      {{"name", kBucket},
                       {"subjects", {std::string(kPrefix) + ">"}},
                       {"storage", "memory"},
                       {"num_replicas", 1},
                       {"max_msgs_per_subject", 1},
                       {"discard", "new"},
                       {"allow_rollup_hdrs", true},
                       {"allow_direct", true},
                       {"allow_msg_ttl", true},
                       {"subject_delete_marker_ttl", kMarkerNs}});
}

// Returns the deadline of each key.
std::vector<double> Fill(const Arguments& arguments) {
  NatsConnection connection(arguments.port);
  CreateBucket(&connection);
  const std::string stored = connection.Inbox(kSid);
  const std::string header =
      "Nats-TTL: " + std::to_string(arguments.ttl_s) + "s\r\n";
  const std::string value(static_cast<size_t>(arguments.value_bytes), 'v');
  std::vector<double> deadlines;
  deadlines.reserve(arguments.entries);
  for (uint64_t i = 0; i < arguments.entries; i += kFillDepth) {
    const uint64_t count = std::min(kFillDepth, arguments.entries - i);
    for (uint64_t j = 0; j < count; ++j) {
      connection.PublishWith(header, kPrefix + std::to_string(i + j), stored,
                             value);
    }
    for (uint64_t j = 0; j < count; ++j) {
      if (connection.Await().payload.find("\"seq\"") ==
          std::string_view::npos) {
        throw std::runtime_error("NATS did not store a key");
      }
      // When its put was acknowledged: after it was stored, so that what is
      // called late is at least so late.
      deadlines.push_back(UnixSeconds() + arguments.ttl_s);
    }
  }
  return deadlines;
}

struct Marker {
  double at = 0;
  double late = 0;
};

// Reads the markers of all keys.
std::vector<Marker> Markers(NatsConnection* watcher, const Arguments& arguments,
                            const std::vector<double>& deadlines) {
  constexpr size_t kPrefixBytes = sizeof(kPrefix) - 1;
  std::vector<Marker> markers;
  markers.reserve(arguments.entries);
  const double give_up =
      deadlines.back() + static_cast<double>(arguments.patience_ms) / 1e3;
  while (markers.size() < arguments.entries && UnixSeconds() < give_up) {
    NatsMessage message;
    const double now = UnixSeconds();
    while (watcher->Next(&message)) {
      if (message.sid != kSid ||
          message.header.find("Nats-Marker-Reason: MaxAge") ==
              std::string_view::npos) {
        continue;
      }
      const std::string_view key = message.subject.substr(kPrefixBytes);
      uint64_t number = 0;
      std::from_chars(key.data(), key.data() + key.size(), number);
      markers.push_back({now, now - deadlines.at(number)});
    }
    watcher->transport().Flush();
    pollfd poll_for = {watcher->transport().fd(), POLLIN, 0};
    if (poll(&poll_for, 1, kPollMs) > 0) watcher->transport().Receive();
  }
  return markers;
}

int Run(const Arguments& arguments) {
  const std::vector<double> deadlines = Fill(arguments);
  NatsConnection watcher(arguments.port);
  watcher.Request(std::string("CONSUMER.CREATE.") + kBucket,
                  {{"stream_name", kBucket},
                   {"config",
                    {{"deliver_subject", watcher.Inbox(kSid)},
                     {"deliver_policy", "new"},
                     {"ack_policy", "none"},
                     {"mem_storage", true}}}});
  const double filled_before = deadlines.front() - UnixSeconds();
  if (filled_before <= 0) {
    throw std::runtime_error("filling took longer than --ttl-s");
  }
  const std::vector<Marker> markers = Markers(&watcher, arguments, deadlines);
  if (markers.empty()) throw std::runtime_error("no marker came");
  std::vector<double> late;
  late.reserve(markers.size());
  for (const Marker& marker : markers) late.push_back(marker.late);
  std::sort(late.begin(), late.end());
  const auto count = static_cast<double>(markers.size());
  const nlohmann::ordered_json json = {
      {"entries", arguments.entries},
      {"events", markers.size()},
      {"first_ms", late.front() * 1e3},
      {"median_ms", late[late.size() / 2] * 1e3},
      {"last_ms", late.back() * 1e3},
      {"events_per_second", count / (markers.back().at - deadlines.front())},
      {"filled_before_ms", filled_before * 1e3},
      {"filled_in_ms", (deadlines.back() - deadlines.front()) * 1e3}};
  std::printf("%s\n", json.dump().c_str());
  return markers.size() == arguments.entries ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("How late NATS tells of keys that expire", "nats_storm");
  app.add_option("--port", arguments.port)
      ->required()
      ->check(CLI::Range(1, 65535));
  app.add_option("--entries", arguments.entries)->check(CLI::PositiveNumber);
  app.add_option("--value-bytes", arguments.value_bytes);
  app.add_option("--ttl-s", arguments.ttl_s, "Of each key")
      ->check(CLI::Range(1, 3'600));
  app.add_option("--patience-ms", arguments.patience_ms,
                 "How long after the last deadline markers are waited for");
  CLI11_PARSE(app, argc, argv);
  try {
    return Run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nats_storm: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }
