#include "server/main/state_metrics.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/base/memory_budget.h"
#include "server/ops/log.h"

namespace timecache::server {
namespace {

void AddServerMetrics(const Server* server, Metrics* metrics) {
  metrics->Add({"timecache_connections", "Open connections of all listeners."},
               [server] { return server->connections(); });
  metrics->Add({"timecache_connections_refused_total",
                "Connections beyond limits.max_connections, closed at once."},
               [server] { return server->refused_connections(); });
  metrics->Add({"timecache_connections_delayed_total",
                "Connections that waited: their address exceeds "
                "limits.max_new_connections_per_second."},
               [server] { return server->pacer().delayed(); });
  metrics->Add({"timecache_connections_gone_total",
                "Of these, closed by their peers before it was their turn."},
               [server] { return server->pacer().gone(); });
  metrics->Add({"timecache_connections_too_fast_total",
                "Connections closed at once: too many of their address wait."},
               [server] { return server->pacer().refused(); });
  metrics->Add(
      {"timecache_connections_cut_total",
       "Connections ended because they sent too many calls or bytes without "
       "credentials."},
      [server] { return server->guard().cut(); });
  metrics->Add({"timecache_calls_dropped_total",
                "Calls not served: their connection was gone."},
               [server] { return server->guard().dropped(); });
}

void AddResponseMetrics(const Server* server, Metrics* metrics) {
  metrics->Add(
      {"timecache_response_budget_bytes",
       "limits.max_response_bytes, beyond which connections that do not read "
       "are ended; 0: no bound."},
      [server] { return server->responses().max; });
  metrics->Add(
      {"timecache_response_bytes",
       "Memory of responses that clients have not read, and of unary calls "
       "that are answered and not done."},
      [server] { return server->responses().bytes; });
  metrics->Add(
      {"timecache_responses_waiting",
       "Calls that wait for room, because clients do not read responses."},
      [server] { return server->responses().waiting; });
  metrics->Add(
      {"timecache_responses_waited_total", "Of these, calls that got room."},
      [server] { return server->responses().waited; });
  metrics->Add(
      {"timecache_responses_refused_total",
       "Of these, calls that got no room within limits.response_timeout."},
      [server] { return server->responses().refused; });
  metrics->Add(
      {"timecache_connections_unread_total",
       "Connections that were ended because their clients did not read."},
      [server] { return server->responses().ended_connections; });
}

void AddClockMetrics(const SystemClock* clock, Metrics* metrics) {
  metrics->Add(
      {"timecache_clock_offset_seconds",
       "How far the machine's clock is ahead of the server's, which follows it "
       "by at most 1 %; negative: behind it."},
      [clock] {
        return static_cast<double>(*clock->OffsetUs()) / kMicrosPerSecond;
      });
  metrics->Add(
      {"timecache_stalled_seconds_total",
       "Time for which the process stood still, beyond stall_grace each time: "
       "it is not counted by the server's clock."},
      [clock] {
        return static_cast<double>(clock->stalled_us()) / kMicrosPerSecond;
      });
}

void AddMemoryMetrics(Metrics* metrics) {
  metrics->Add(
      {"timecache_memory_budget_bytes",
       "limits.max_memory_bytes, beyond which puts are refused; 0: no limit."},
      [] { return MemoryBudget::Process().limit_bytes(); });
  metrics->Add(
      {"timecache_memory_budget_used_bytes",
       "Memory of all namespaces, their logs and groups, and of messages in "
       "flight."},
      [] { return MemoryBudget::Process().used_bytes(); });
  const auto add_share = [metrics](const char* holder,
                                   int64_t MemoryBudget::Shares::*share) {
    metrics->Add({"timecache_memory_share_bytes",
                  "The used memory by use: entries, retained events, and "
                  "events that only backlogs of groups and messages in "
                  "flight hold."},
                 [share] { return MemoryBudget::Process().shares().*share; },
                 {{"holder", holder}});
  };
  add_share("entries", &MemoryBudget::Shares::entries_bytes);
  add_share("retained", &MemoryBudget::Shares::retained_bytes);
  add_share("backlog", &MemoryBudget::Shares::backlog_bytes);
}

void AddReloadMetrics(const Reload* reload, Metrics* metrics) {
  metrics->Add({"timecache_config_reload_ok",
                "1 if the configuration was valid when it was last read."},
               [reload] { return reload->state().ok ? 1 : 0; });
  metrics->Add(
      {"timecache_config_loaded_timestamp_seconds",
       "When the configuration in force was read, in seconds since 1970."},
      [reload] {
        return static_cast<double>(reload->state().loaded_at_us) / 1e6;
      });
}

void AddAccessMetrics(const AccessFile* access, Metrics* metrics) {
  metrics->Add({"timecache_access_reload_ok",
                "1 if the access file was valid when it was last read."},
               [access] { return access->state().ok ? 1 : 0; });
  metrics->Add(
      {"timecache_access_loaded_timestamp_seconds",
       "When the access rules in force were read, in seconds since 1970."},
      [access] {
        return absl::ToDoubleSeconds(access->state().loaded_at -
                                     absl::UnixEpoch());
      });
}

void AddTlsMetrics(const TlsListeners* tls, Metrics* metrics) {
  const std::vector<TlsState> states = tls->states();
  for (size_t i = 0; i < states.size(); ++i) {
    metrics->Add(
        {"timecache_tls_certificate_expiry_timestamp_seconds",
         "When the listener's certificate expires, in seconds since 1970."},
        [tls, i] { return absl::ToUnixSeconds(tls->states()[i].not_after); },
        {{"address", states[i].address}});
  }
  for (size_t i = 0; i < states.size(); ++i) {
    metrics->Add({"timecache_tls_reload_failures_total",
                  "Changes of the listener's files that were refused."},
                 [tls, i] { return tls->states()[i].refusals; },
                 {{"address", states[i].address}});
  }
}

}  // namespace

void AddStateMetrics(const StateSources& from, Metrics* metrics) {
  AddServerMetrics(from.server, metrics);
  AddResponseMetrics(from.server, metrics);
  AddMemoryMetrics(metrics);
  AddClockMetrics(from.clock, metrics);
  metrics->Add({"timecache_log_lines_dropped_total",
                "Log lines that were dropped because standard error did not "
                "accept them."},
               [] { return DroppedLogLines(); });
  AddReloadMetrics(from.reload, metrics);
  if (from.access != nullptr) AddAccessMetrics(from.access, metrics);
  AddTlsMetrics(from.tls, metrics);
}

}  // namespace timecache::server
