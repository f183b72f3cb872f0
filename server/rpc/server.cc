#include "server/rpc/server.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "server/api/proto_time.h"
#include "server/base/memory_budget.h"
#include "server/rpc/admin/health_server.h"
#include "server/rpc/admin/reflection.h"
#include "server/rpc/call/server_limits.h"
#include "server/rpc/services.h"

namespace timecache::server {
namespace {

// From a shutdown on gRPC closes a connection as soon as its last call has
// ended, also where the client has not read all of it. What that client then
// sends to a closed socket makes the kernel drop the rest: so clients get this
// long to read what was written to their streams.
constexpr std::chrono::milliseconds kLinger(1'000);

// A call that arrives at the moment when gRPC closes a connection ends with
// CANCELLED, as if its client had cancelled it. So for this long before that,
// calls are refused because the server stops.
constexpr std::chrono::milliseconds kLastCalls(100);

// gRPC asks its clients to go away with a PING, and waits for 20 s for its
// answer. A working client answers at once: one that has been silent for this
// long is cut, unless it has data to read.
constexpr std::chrono::milliseconds kGoAwayPatience(1'000);

// The bound of unproven bytes, derived from gRPC's bound for all requests, if
// there is one: the rest is for identified callers. The minimum leaves room for
// two of the largest requests; no first request needs the maximum.
int64_t MaxUnprovenBytes(int64_t grpc_memory_bytes) {
  constexpr int64_t kLeast = int64_t{32} << 20;
  constexpr int64_t kMost = int64_t{128} << 20;
  return std::clamp(grpc_memory_bytes / 2, kLeast, kMost);
}

using SteadyTime = std::chrono::steady_clock::time_point;

}  // namespace

Server::Server(Store* store, const Clock* clock, ServerOptions options)
    : options_(std::move(options)),
      clock_(clock),
      store_(store),
      acceptor_(
          {.max_connections = options_.limits.max_connections(),
           .pace = static_cast<int>(
               options_.limits.max_new_connections_per_second()),
           .max_unproven_bytes = MaxUnprovenBytes(options_.grpc_memory_bytes)}),
      responses_({.max_bytes = static_cast<int64_t>(
                      options_.limits.max_response_bytes()),
                  .timeout = absl::ToChronoMilliseconds(
                      ToDuration(options_.limits.response_timeout())),
                  .max_calls_per_connection = static_cast<int>(
                      options_.limits.max_calls_per_connection()),
                  .end_connection =
                      [this](const std::string& peer) {
                        acceptor_.Cut(PeerEndpoint::OfGrpcPeer(peer));
                      },
                  .use_of =
                      [this](const std::string& peer) {
                        return acceptor_.UseOf(PeerEndpoint::OfGrpcPeer(peer));
                      }}),
      gate_(options_.access, options_.call_observers, &acceptor_.guard(),
            &responses_, options_.cluster.check_service),
      hub_(clock, options_.limits.max_watchers()),
      services_(std::make_unique<Services>(
          options_,
          Services::Parts{store, &gate_, &acceptor_.guard(), &hub_, &streams_,
                          &responses_, &counted_calls_, &tails_,
                          MakeOperatorSource()},
          [this](bool limits, v1::GetServerResponse* server) {
            Describe(server);
            if (limits) DescribeLimits(server);
          })) {
  if (options_.access != nullptr) {
    store_->SetDeadLetterRight([access = options_.access](
                                   absl::string_view principal,
                                   absl::string_view name) {
      return CheckPrincipal(*access, principal, config::v1::VERB_WRITE, name);
    });
    options_.access->SetListener([this] { CheckStreams(); });
  }
}

Server::~Server() {
  if (options_.access != nullptr) {
    options_.access->SetListener(nullptr);
    // The rules may end before the registry does.
    store_->SetDeadLetterRight([](absl::string_view, absl::string_view) {
      return absl::PermissionDeniedError("the server has stopped");
    });
  }
  if (server_ != nullptr) Drain(0);
}

absl::Status Server::StartHealth() {
  if (options_.health_address.empty()) return absl::OkStatus();
  auto health = std::make_unique<HealthServer>();
  absl::Status status = health->Start(options_.health_address);
  if (!status.ok()) return status;
  health_server_ = std::move(health);
  health_address_ = health_server_->address();
  return absl::OkStatus();
}

absl::Status Server::Start() {
  if (health_server_ == nullptr) {
    absl::Status status = StartHealth();
    if (!status.ok()) return status;
  }
  start_us_ = clock_->NowUs();
  // Health is a service of our own.
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  ApplyLimits(options_.limits, options_.connection_limits,
              options_.grpc_memory_bytes, &builder);
  // No rule can guard it.
  SetReflection(options_.reflection && options_.access == nullptr, &builder);
  services_->AddTo(&builder);
  options_.credentials.resize(options_.addresses.size());
  for (size_t i = 0; i < options_.addresses.size(); ++i) {
    const absl::Status status = acceptor_.Listen(
        options_.addresses[i],
        options_.credentials[i] != nullptr ? options_.credentials[i]
                                           : grpc::InsecureServerCredentials(),
        &builder);
    if (!status.ok()) return status;
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError("cannot start the gRPC server");
  }
  addresses_ = acceptor_.addresses();
  acceptor_.Start();
  responses_.Start();
  // A node of a cluster reports it once it serves.
  SetHealth(options_.cluster.check_service == nullptr);
  keep_awake_ = std::make_unique<KeepAwake>(server_.get());
  return absl::OkStatus();
}

void Server::SetHealth(bool serving) {
  if (draining_.load(std::memory_order_relaxed)) serving = false;
  services_->health().SetServing(serving);
  if (health_server_ != nullptr) health_server_->SetServing(serving);
}

void Server::CheckStreams() {
  streams_.AccessChanged();
  // Watchers check whenever they are woken.
  hub_.HeartbeatAll();
}

void Server::SetNotServing() {
  draining_.store(true, std::memory_order_relaxed);
  SetHealth(false);
}

DrainReport Server::Drain(int64_t grace_us) {
  SetNotServing();
  DrainReport report;
  report.watchers = hub_.Drain();
  const OpenStreams::Drained drained = streams_.Drain();
  report.pipelines = drained.streams;
  keep_awake_.reset();
  // By the monotonic clock: a step of the system clock neither cuts calls nor
  // delays the server.
  const SteadyTime deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(grace_us);
  report.pipelines_cut = streams_.WaitForNone(deadline);
  report.watchers_cut = hub_.WaitForNone(deadline);
  gate_.Close();
  responses_.Stop();
  std::chrono::milliseconds linger(0);
  if (acceptor_.open() > 0) linger = kLastCalls;
  if (report.watchers + drained.read_late > 0) linger = kLinger;
  std::this_thread::sleep_until(
      std::min(deadline, std::chrono::steady_clock::now() + linger));
  acceptor_.Stop();
  services_->health().EndWatches();
  const SteadyTime asked = std::chrono::steady_clock::now();
  report.in_time = ShutDown(server_.get(), deadline, [this, asked] {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - asked);
    if (since > kGoAwayPatience) acceptor_.CutSilent(since);
  });
  server_->Wait();
  server_.reset();
  if (health_server_ != nullptr) health_server_->Stop();
  return report;
}

OperatorSource Server::MakeOperatorSource() {
  return {
      .now_us = [this] { return clock_->NowUs(); },
      .list_connections =
          [this](uint64_t after, size_t most) {
            return acceptor_.List(after, most);
          },
      .close_connection = [this](uint64_t id) { return acceptor_.Close(id); },
      .describe_slow_calls = options_.describe_slow_calls};
}

void Server::Describe(v1::GetServerResponse* server) const {
  server->set_version(options_.version);
  SetTime(start_us_, server->mutable_start_time());
  SetTime(clock_->NowUs(), server->mutable_now());
  if (const auto offset_us = clock_->OffsetUs(); offset_us.has_value()) {
    SetDuration(*offset_us, server->mutable_clock_offset());
  }
  server->set_draining(draining_.load(std::memory_order_relaxed));
}

void Server::DescribeLimits(v1::GetServerResponse* server) const {
  const auto set = [](auto used, auto max, v1::LimitUse* use) {
    use->set_used(static_cast<uint64_t>(used));
    use->set_max(static_cast<uint64_t>(max));
  };
  const StoreUsage usage = store_->GetUsage();
  set(usage.namespaces, usage.max_namespaces, server->mutable_namespaces());
  set(usage.entries, usage.max_entries, server->mutable_entries());
  set(usage.bytes, usage.max_bytes, server->mutable_bytes());
  set(hub_.size(), hub_.max(), server->mutable_watchers());
  const MemoryBudget& memory = MemoryBudget::Process();
  set(memory.used_bytes(), memory.limit_bytes(),
      server->mutable_memory_bytes());
  const MemoryBudget::Shares shares = memory.shares();
  const auto to = server->mutable_memory_shares();
  to->set_entries_bytes(static_cast<uint64_t>(shares.entries_bytes));
  to->set_retained_bytes(static_cast<uint64_t>(shares.retained_bytes));
  to->set_backlog_bytes(static_cast<uint64_t>(shares.backlog_bytes));
  set(acceptor_.open(), acceptor_.max(), server->mutable_connections());
  if (options_.describe_journal) {
    options_.describe_journal(server->mutable_journal());
  }
}

}  // namespace timecache::server
