// Several writers append events to a log of time chunks; a reader follows it,
// reads the events between two times, and finds that old ones have expired.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "client/examples/example.h"
#include "timecache/recipes/event_log.h"

namespace timecache::examples {
namespace {

// Events are kept for (6 - 1) x 1 s.
constexpr EventLogOptions kOptions = {.chunk = absl::Seconds(1), .chunks = 6};
constexpr int kWriters = 3;
constexpr int kSteps = 10;
constexpr absl::Duration kStep = absl::Milliseconds(800);

void Print(const char* what, const EventLog::Page& page, absl::Time begin) {
  std::cout << what << "\t" << page.events.size() << " events";
  if (!page.events.empty()) {
    std::cout << ", " << page.events.front().data << " at "
              << page.events.front().time - begin << " to "
              << page.events.back().data << " at "
              << page.events.back().time - begin;
  }
  if (page.may_have_missed) std::cout << "; older ones are gone";
  std::cout << std::endl;
}

absl::Status Run(const Client& client) {
  const Time time(client);
  const auto begin = time.Now();
  if (!begin.ok()) return begin.status();
  // A log of this run's own.
  const EventLog log(client,
                     "eventlog-example-" + std::to_string(EventLog::NewId()),
                     kOptions);
  EventLog::Position position = log.PositionAt(*begin);
  absl::Time now = *begin;
  for (int step = 0; step < kSteps; ++step) {
    for (int writer = 0; writer < kWriters; ++writer) {
      const std::string data =
          "event " + std::to_string(step) + "/" + std::to_string(writer);
      absl::Status appended = log.Append(now, data);
      if (!appended.ok()) return appended;
    }
    const auto page = log.ReadNew(&position, now);
    if (!page.ok()) return page.status();
    Print("new", *page, *begin);
    if (auto passed = time.Pass(kStep); !passed.ok()) return passed;
    const auto later = time.Now();
    if (!later.ok()) return later.status();
    now = *later;
  }
  const auto between = log.Read(now - absl::Seconds(3), now - absl::Seconds(1));
  if (!between.ok()) return between.status();
  Print("between", *between, *begin);
  const auto all = log.Read(*begin, now);
  if (!all.ok()) return all.status();
  Print("all", *all, *begin);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string address = "127.0.0.1:7171";
  CLI::App app("Writes and follows a log of time chunks", "eventlog");
  app.add_option("--address", address, "The server's address");
  CLI11_PARSE(app, argc, argv);
  return Exit("eventlog", Run(Client(address)));
}

}  // namespace
}  // namespace timecache::examples

int main(int argc, char** argv) {
  return timecache::examples::Main(argc, argv);
}
