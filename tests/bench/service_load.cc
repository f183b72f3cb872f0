#include "tests/bench/service_load.h"

#include <grpcpp/grpcpp.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <optional>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace timecache::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A benchmark of calls that fail measures nothing.
[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "\nservice_bench: %s\n", what.c_str());
  std::exit(1);
}

double CpuSeconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// One call after the other, until told to stop.
class Caller {
 public:
  Caller(v1::TimeCacheService::Stub* stub, const std::vector<std::string>& keys,
         Rpc rpc, uint64_t seed, const std::atomic<bool>& stopped,
         std::latch* ended)
      : stub_(stub),
        keys_(keys),
        rpc_(rpc),
        random_(seed * 2 + 1),
        stopped_(stopped),
        ended_(ended) {
    put_.set_namespace_("bench");
    put_.set_value(std::string(kValueBytes, 'v'));
    get_.set_namespace_("bench");
  }

  void Start() {
    // Knuth's MMIX generator: the high digits are the random ones.
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const std::string& key = keys_[(random_ >> 33) % keys_.size()];
    context_.emplace();
    began_ = SteadyClock::now();
    if (rpc_ == Rpc::kPut) {
      put_.set_key(key);
      stub_->async()->Put(&*context_, &put_, &put_response_,
                          [this](grpc::Status status) { Finish(status); });
    } else {
      get_.set_key(key);
      get_response_.Clear();
      stub_->async()->Get(&*context_, &get_, &get_response_,
                          [this](grpc::Status status) { Finish(status); });
    }
  }

  const std::vector<float>& latencies_us() const { return latencies_us_; }

 private:
  void Finish(const grpc::Status& status) {
    if (!status.ok()) Fail("a call failed: " + status.error_message());
    const bool whole =
        rpc_ == Rpc::kPut ? put_response_.version() != 0
                          : get_response_.entry().value().size() == kValueBytes;
    if (!whole) Fail("an answer is not whole");
    latencies_us_.push_back(
        std::chrono::duration<float, std::micro>(SteadyClock::now() - began_)
            .count());
    if (stopped_.load(std::memory_order_relaxed)) {
      ended_->count_down();
    } else {
      Start();
    }
  }

  v1::TimeCacheService::Stub* const stub_;
  const std::vector<std::string>& keys_;
  const Rpc rpc_;
  uint64_t random_;
  const std::atomic<bool>& stopped_;
  std::latch* const ended_;
  std::optional<grpc::ClientContext> context_;
  v1::PutRequest put_;
  v1::PutResponse put_response_;
  v1::GetRequest get_;
  v1::GetResponse get_response_;
  SteadyClock::time_point began_;
  std::vector<float> latencies_us_;
};

double Quantile(std::vector<float>* sample, double share) {
  if (sample->empty()) return 0;
  const auto place =
      static_cast<ptrdiff_t>(share * static_cast<double>(sample->size() - 1));
  std::nth_element(sample->begin(), sample->begin() + place, sample->end());
  return (*sample)[static_cast<size_t>(place)];
}

}  // namespace

LoadGenerator::LoadGenerator(const std::string& address, int server_pid,
                             int max_connections)
    : server_pid_(server_pid) {
  for (int i = 0; i < kKeys; ++i) {
    keys_.push_back(absl::StrFormat("key-%012d", i));
  }
  for (int i = 0; i < max_connections; ++i) {
    // Without it all channels to an address share one connection.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs_.push_back(v1::TimeCacheService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments)));
  }
}

void LoadGenerator::Fill() {
  v1::PutRequest request;
  request.set_namespace_("bench");
  request.set_value(std::string(kValueBytes, 'v'));
  for (const std::string& key : keys_) {
    grpc::ClientContext context;
    request.set_key(key);
    v1::PutResponse response;
    const grpc::Status status = stubs_[0]->Put(&context, request, &response);
    if (!status.ok()) Fail("cannot fill: " + status.error_message());
  }
}

double LoadGenerator::TimeOneGetMs() {
  v1::GetRequest request;
  request.set_namespace_("bench");
  request.set_key(keys_[0]);
  v1::GetResponse response;
  grpc::ClientContext context;
  const auto began = SteadyClock::now();
  const grpc::Status status = stubs_[0]->Get(&context, request, &response);
  if (!status.ok()) Fail("a call failed: " + status.error_message());
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - began)
      .count();
}

Round LoadGenerator::Run(const Load& load, absl::Duration duration) {
  std::atomic<bool> stopped{false};
  const int count = load.connections * load.calls_in_flight;
  std::latch ended(count);
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < count; ++i) {
    callers.push_back(std::make_unique<Caller>(
        stubs_[static_cast<size_t>(i % load.connections)].get(), keys_,
        load.rpc, static_cast<uint64_t>(i), stopped, &ended));
  }
  clockid_t server_clock;
  if (clock_getcpuclockid(server_pid_, &server_clock) != 0) {
    Fail("the server has ended");
  }
  const double server_cpu_s = CpuSeconds(server_clock);
  const double client_cpu_s = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const auto began = SteadyClock::now();
  for (const auto& caller : callers) caller->Start();
  absl::SleepFor(duration);
  stopped = true;
  ended.wait();
  const double took_s =
      std::chrono::duration<double>(SteadyClock::now() - began).count();
  Round round;
  const double server_used_s = CpuSeconds(server_clock) - server_cpu_s;
  const double client_used_s =
      CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - client_cpu_s;
  std::vector<float> latencies_us;
  for (const auto& caller : callers) {
    latencies_us.insert(latencies_us.end(), caller->latencies_us().begin(),
                        caller->latencies_us().end());
  }
  const auto calls = static_cast<double>(latencies_us.size());
  round.calls_per_second = calls / took_s;
  round.p50_us = Quantile(&latencies_us, 0.5);
  round.p99_us = Quantile(&latencies_us, 0.99);
  round.server_cpu_us_per_call = server_used_s * 1e6 / calls;
  round.client_cpu_us_per_call = client_used_s * 1e6 / calls;
  return round;
}

}  // namespace timecache::bench
