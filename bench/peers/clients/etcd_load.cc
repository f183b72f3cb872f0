// Keys under leases on etcd: how many puts it takes, and how many leases expire
// in a second while a watcher reads.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/peers/clients/etcd.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

namespace etcd = etcdserverpb;
using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

// How long after its time to live a lease may take to expire.
constexpr std::chrono::seconds kPatience(120);

struct Arguments {
  int port = 0;
  int connections = 16;
  int value_bytes = 64;
  int64_t ttl_seconds = 3'600;
  double seconds = 5;
  int leases = 0;
};

double Since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

void Require(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

std::shared_ptr<grpc::Channel> Connect(const Arguments& arguments) {
  grpc::ChannelArguments options;
  // A connection for each channel.
  options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", arguments.port),
                                   grpc::InsecureChannelCredentials(), options);
}

// One connection that calls one after the other.
class Caller {
 public:
  explicit Caller(const Arguments& arguments)
      : channel_(Connect(arguments)),
        puts_(etcd::KV::NewStub(channel_)),
        leases_(etcd::Lease::NewStub(channel_)),
        ttl_seconds_(arguments.ttl_seconds),
        value_(static_cast<size_t>(arguments.value_bytes), 'v') {}

  int64_t Grant() {
    grpc::ClientContext context;
    etcd::LeaseGrantRequest request;
    request.set_ttl(ttl_seconds_);
    etcd::LeaseGrantResponse response;
    Require(leases_->LeaseGrant(&context, request, &response));
    return response.id();
  }

  void Put(int64_t number, int64_t lease) {
    grpc::ClientContext context;
    etcd::PutRequest request;
    request.set_key(absl::StrFormat("key:%012d", number));
    request.set_value(value_);
    request.set_lease(lease);
    etcd::PutResponse response;
    Require(puts_->Put(&context, request, &response));
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<etcd::KV::Stub> puts_;
  const std::unique_ptr<etcd::Lease::Stub> leases_;
  const int64_t ttl_seconds_;
  const std::string value_;
};

// Calls `work` on a thread for each connection. The first failure is thrown.
void OnAllConnections(const Arguments& arguments,
                      const std::function<void(Caller*)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(arguments.connections));
  std::vector<std::string> failures(arguments.connections);
  for (int i = 0; i < arguments.connections; ++i) {
    threads.emplace_back([&, i] {
      try {
        Caller caller(arguments);
        work(&caller);
      } catch (const std::exception& error) {
        failures[i] = absl::StrCat("etcd: ", error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) {
    if (!failure.empty()) throw std::runtime_error(failure);
  }
}

// Puts of new keys, each under its connection's lease.
Json Puts(const Arguments& arguments) {
  Caller(arguments).Grant();  // answered once there is a leader
  std::atomic<int64_t> puts = 0;
  const auto begin = SteadyClock::now();
  OnAllConnections(arguments, [&](Caller* caller) {
    const int64_t lease = caller->Grant();
    while (Since(begin) < arguments.seconds) caller->Put(puts++, lease);
  });
  const double seconds = Since(begin);
  return {{"operations", puts.load()},
          {"seconds", seconds},
          {"operations_per_second", static_cast<double>(puts) / seconds}};
}

// One key under each lease; all leases have the same time to live.
Json Expiries(const Arguments& arguments) {
  const auto watcher = etcd::Watch::NewStub(Connect(arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(arguments.ttl_seconds) + kPatience);
  const auto stream = watcher->Watch(&context);
  etcd::WatchRequest request;
  etcd::WatchCreateRequest* const create = request.mutable_create_request();
  create->set_key("key:");
  create->set_range_end("key;");
  create->add_filters(etcd::WatchCreateRequest::NOPUT);
  etcd::WatchResponse response;
  if (!stream->Write(request) || !stream->Read(&response)) {
    throw std::runtime_error("etcd: cannot watch");
  }
  Caller(arguments).Grant();  // answered once there is a leader
  std::atomic<int64_t> next = 0;
  const auto begin = SteadyClock::now();
  OnAllConnections(arguments, [&](Caller* caller) {
    for (int64_t i = next++; i < arguments.leases; i = next++) {
      caller->Put(i, caller->Grant());
    }
  });
  const double filled = Since(begin);
  const auto ttl = static_cast<double>(arguments.ttl_seconds);
  int64_t events = 0;
  double first = 0;
  double last = 0;
  while (events < arguments.leases && stream->Read(&response)) {
    if (response.events_size() == 0) continue;
    last = Since(begin);
    if (events == 0) first = last;
    events += response.events_size();
  }
  context.TryCancel();
  if (events < arguments.leases) {
    throw std::runtime_error("etcd: the keys of some leases did not expire");
  }
  return {{"leases", arguments.leases},
          {"first_after_ttl_ms", (first - ttl) * 1e3},
          {"last_after_ttl_ms", (last - filled - ttl) * 1e3},
          {"events_per_second", static_cast<double>(events) / (last - first)},
          {"seconds_to_fill", filled}};
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Keys under leases on etcd; figures as one line of JSON",
               "etcd_load");
  app.add_option("--port", arguments.port)
      ->required()
      ->check(CLI::Range(1, 65535));
  app.add_option("--connections", arguments.connections)
      ->check(CLI::Range(1, 1'000));
  app.add_option("--value-bytes", arguments.value_bytes)
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--ttl-seconds", arguments.ttl_seconds)
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", arguments.seconds, "How long to put")
      ->check(CLI::PositiveNumber);
  app.add_option("--leases", arguments.leases,
                 "Let so many leases of one key each expire instead")
      ->check(CLI::Range(2, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  try {
    const Json json =
        arguments.leases > 0 ? Expiries(arguments) : Puts(arguments);
    std::printf("%s\n", json.dump().c_str());
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "etcd_load: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }
