// Keys under leases on etcd: how many puts and gets it takes, and how many leases
// expire in a second while a watcher reads.
#include <algorithm>
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
constexpr int64_t kFillDepth = 100;
// Between keys that are read one after the other: coprime to how many there are.
constexpr int64_t kStride = 7'919;

struct Arguments {
  std::vector<int> ports;
  int connections = 16;
  int value_bytes = 64;
  int64_t ttl_seconds = 3'600;
  double seconds = 5;
  int depth = 1;
  int64_t get_keys = 0;
  int leases = 0;
};

double Since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

void Require(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error_message());
}

// Calls again while the server has too many requests.
template <typename Call>
void RequireOf(const Call& call) {
  for (;;) {
    grpc::ClientContext context;
    const grpc::Status status = call(&context);
    if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) {
      return Require(status);
    }
  }
}

std::shared_ptr<grpc::Channel> Connect(const Arguments& arguments,
                                       int connection = 0) {
  grpc::ChannelArguments options;
  // A connection for each channel.
  options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const int port =
      arguments.ports[static_cast<size_t>(connection) % arguments.ports.size()];
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials(), options);
}

// One connection that calls one after the other.
class Caller {
 public:
  explicit Caller(const Arguments& arguments, int connection = 0)
      : channel_(Connect(arguments, connection)),
        puts_(etcd::KV::NewStub(channel_)),
        leases_(etcd::Lease::NewStub(channel_)),
        ttl_seconds_(arguments.ttl_seconds),
        value_(static_cast<size_t>(arguments.value_bytes), 'v') {}

  int64_t Grant() {
    etcd::LeaseGrantRequest request;
    request.set_ttl(ttl_seconds_);
    etcd::LeaseGrantResponse response;
    RequireOf([&](grpc::ClientContext* context) {
      return leases_->LeaseGrant(context, request, &response);
    });
    return response.id();
  }

  void Put(int64_t number, int64_t lease) {
    etcd::PutRequest request;
    SetPut(number, lease, &request);
    RequireOf([&](grpc::ClientContext* context) {
      etcd::PutResponse response;
      return puts_->Put(context, request, &response);
    });
  }

  // `count` keys from `number` up, in one transaction.
  void PutAll(int64_t number, int64_t count, int64_t lease) {
    etcd::TxnRequest request;
    for (int64_t i = 0; i < count; ++i) {
      SetPut(number + i, lease, request.add_success()->mutable_request_put());
    }
    RequireOf([&](grpc::ClientContext* context) {
      etcd::TxnResponse response;
      return puts_->Txn(context, request, &response);
    });
  }

  void Get(int64_t number) {
    grpc::ClientContext context;
    etcd::RangeRequest request;
    request.set_key(Key(number));
    etcd::RangeResponse response;
    Require(puts_->Range(&context, request, &response));
    if (response.count() != 1) throw std::runtime_error("a key is missing");
  }

 private:
  static std::string Key(int64_t number) {
    return absl::StrFormat("key:%012d", number);
  }

  void SetPut(int64_t number, int64_t lease, etcd::PutRequest* request) const {
    request->set_key(Key(number));
    request->set_value(value_);
    request->set_lease(lease);
  }

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
        Caller caller(arguments, i);
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

Json Rate(int64_t operations, double seconds) {
  return {{"operations", operations},
          {"seconds", seconds},
          {"operations_per_second", static_cast<double>(operations) / seconds}};
}

// Puts of new keys, each under its connection's lease.
Json Puts(const Arguments& arguments) {
  Caller(arguments).Grant();  // answered once there is a leader
  std::atomic<int64_t> puts = 0;
  const auto begin = SteadyClock::now();
  OnAllConnections(arguments, [&](Caller* caller) {
    const int64_t lease = caller->Grant();
    while (Since(begin) < arguments.seconds) {
      if (arguments.depth == 1) {
        caller->Put(puts++, lease);
      } else {
        caller->PutAll(puts.fetch_add(arguments.depth), arguments.depth, lease);
      }
    }
  });
  return Rate(puts, Since(begin));
}

// Linearizable reads of keys that are there.
Json Gets(const Arguments& arguments) {
  std::atomic<int64_t> next = 0;
  OnAllConnections(arguments, [&](Caller* caller) {
    const int64_t lease = caller->Grant();
    for (int64_t i = next.fetch_add(kFillDepth); i < arguments.get_keys;
         i = next.fetch_add(kFillDepth)) {
      caller->PutAll(i, std::min(kFillDepth, arguments.get_keys - i), lease);
    }
  });
  std::atomic<int64_t> gets = 0;
  const auto begin = SteadyClock::now();
  OnAllConnections(arguments, [&](Caller* caller) {
    while (Since(begin) < arguments.seconds) {
      caller->Get(gets++ * kStride % arguments.get_keys);
    }
  });
  return Rate(gets, Since(begin));
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
  app.add_option("--port", arguments.ports, "Of each member, in turn")
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
  app.add_option("--depth", arguments.depth, "Puts in one transaction")
      ->check(CLI::Range(1, 128));
  app.add_option("--get-keys", arguments.get_keys,
                 "Put so many keys, and get them instead")
      ->check(CLI::PositiveNumber);
  app.add_option("--leases", arguments.leases,
                 "Let so many leases of one key each expire instead")
      ->check(CLI::Range(2, 1'000'000));
  CLI11_PARSE(app, argc, argv);
  try {
    const Json json = arguments.leases > 0     ? Expiries(arguments)
                      : arguments.get_keys > 0 ? Gets(arguments)
                                               : Puts(arguments);
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
