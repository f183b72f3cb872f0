#include "bench/service/service_load.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "absl/time/clock.h"
#include "bench/service/server_usage.h"
#include "client/cli/bench/bench_run.h"
#include "grpcpp/grpcpp.h"

namespace timecache::bench {
namespace {

constexpr char kNamespace[] = "bench";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "\nservice_bench: %s\n", what.c_str());
  std::exit(1);
}

// Ends the program unless all was found.
void RunToItsEnd(cli::BenchRun& run) {
  absl::Status status = run.Run();
  if (status.ok()) status = run.tally().first_error();
  if (!status.ok()) Fail(status.ToString());
  if (run.tally().counts().misses > 0) Fail("a get found nothing");
}

}  // namespace

LoadGenerator::LoadGenerator(const std::string& address, pid_t server_pid)
    : address_(address),
      server_pid_(server_pid),
      stub_(v1::TimeCacheService::NewStub(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {}

void LoadGenerator::Fill() {
  const cli::BenchOptions options = {.address = address_,
                                     .ns = kNamespace,
                                     .mix_percent = {100},
                                     .keys = kKeys,
                                     .is_sequential = true,
                                     .key_bytes = kKeyBytes,
                                     .value_bytes = kValueBytes,
                                     .batch = kOperations,
                                     .duration = absl::Minutes(1),
                                     .operations = kKeys};
  cli::BenchRun run(options, nullptr, [](const cli::BenchTally&) {});
  RunToItsEnd(run);
}

double LoadGenerator::TimeOneGetMs() {
  v1::GetRequest request;
  request.set_namespace_(kNamespace);
  request.set_key("key:000000000000");
  v1::GetResponse response;
  grpc::ClientContext context;
  const absl::Time began = absl::Now();
  const grpc::Status status = stub_->Get(&context, request, &response);
  if (!status.ok()) Fail("a call failed: " + status.error_message());
  return absl::ToDoubleMilliseconds(absl::Now() - began);
}

Round LoadGenerator::Run(const Load& load, absl::Duration duration) {
  const cli::BenchOptions options = {
      .address = address_,
      .ns = kNamespace,
      .mix_percent = load.is_put ? std::array<int, cli::kBenchKinds>{100}
                                 : std::array<int, cli::kBenchKinds>{0, 100},
      .keys = kKeys,
      .key_bytes = kKeyBytes,
      .value_bytes = kValueBytes,
      .batch = load.is_unary ? 1 : kOperations,
      .is_unary = load.is_unary,
      .connections = load.connections,
      .depth = load.calls_in_flight,
      .duration = duration};
  // From the first answer on: without what connecting takes.
  std::optional<double> cpu_us;
  cli::BenchRun run(options, nullptr, [&](const cli::BenchTally&) {
    if (!cpu_us) cpu_us = CpuUs(server_pid_);
  });
  RunToItsEnd(run);
  const cli::BenchTally& tally = run.tally();
  const auto calls = static_cast<double>(tally.latencies().count());
  if (!cpu_us) Fail("no call was answered");
  return {
      .calls_per_second = calls / tally.seconds(),
      .p50_us = static_cast<double>(tally.latencies().PercentileNs(50)) / 1e3,
      .p99_us = static_cast<double>(tally.latencies().PercentileNs(99)) / 1e3,
      .server_cpu_us_per_call = (CpuUs(server_pid_) - *cpu_us) / calls,
      .client_cpu_us_per_call = run.cpu_seconds() * 1e6 / calls};
}

}  // namespace timecache::bench
