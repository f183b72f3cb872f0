#include "server/main/lifecycle.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "absl/time/time.h"
#include "server/api/proto_time.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

// For the journal to write what waits and to close, once the calls are done: at
// most this part of the grace period, unless that is shorter.
constexpr absl::Duration kCloseTime = absl::Seconds(2);
constexpr int kCloseShare = 4;

}  // namespace

void Lifecycle::Run() {
  readiness->Set(Readiness::State::kServing);
  manager->Ready("Serving");
  const int signal = ServeUntilSignal();
  readiness->Set(Readiness::State::kDraining);
  Stop(signal);
}

// Returns the signal that ends it.
int Lifecycle::ServeUntilSignal() {
  while (true) {
    const int signal = signals->Next();
    if (signal != SIGHUP) return signal;
    manager->Reloading();
    manager->Ready(reload->Run() ? "Serving"
                                 : "Serving; the configuration has an error, "
                                   "see the log");
  }
}

void Lifecycle::Stop(int signal) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Duration delay = ToDuration(reload->config().drain_delay());
  const absl::Duration grace = ToDuration(reload->config().grace_period());
  Log(LogLevel::kInfo, "drain_started",
      {{"signal", strsignal(signal)},
       {"drain_delay_ms", absl::ToInt64Milliseconds(delay)},
       {"grace_period_ms", absl::ToInt64Milliseconds(grace)}});
  manager->Stopping(delay + grace);
  server->SetNotServing();
  if (delay > absl::ZeroDuration()) signals->NextEndWithin(delay);
  signals->Release();
  absl::Duration drain = grace;
  if (end_after) {
    drain -= std::min(kCloseTime, grace / kCloseShare);
    end_after(drain + kCloseTime);
  }
  const DrainReport report = server->Drain(absl::ToInt64Microseconds(drain));
  Log(report.in_time ? LogLevel::kInfo : LogLevel::kWarning, "server_stopped",
      {{"calls_cancelled", !report.in_time},
       {"watchers", report.watchers},
       {"watchers_cut", report.watchers_cut},
       {"pipelines", report.pipelines},
       {"pipelines_cut", report.pipelines_cut},
       {"took_ms", std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::steady_clock::now() - start)
                       .count()}});
}

}  // namespace timecache::server
