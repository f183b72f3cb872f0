#include "bench/service/service_load.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/service/service_pipeline.h"
#include "grpcpp/grpcpp.h"

namespace timecache::bench {

void Fail(const std::string& what) {
  std::fprintf(stderr, "\nservice_bench: %s\n", what.c_str());
  std::exit(1);
}

namespace {

constexpr size_t kFillBatch = 1'000;

using SteadyClock = std::chrono::steady_clock;

double CpuSeconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// One unary call after the other.
class UnaryCaller final : public Caller {
 public:
  UnaryCaller(Turn* turn, uint64_t seed, v1::TimeCacheService::Stub* stub,
              Rpc rpc)
      : Caller(turn, seed), stub_(stub), rpc_(rpc) {
    put_.set_namespace_("bench");
    put_.set_value(std::string(kValueBytes, 'v'));
    get_.set_namespace_("bench");
  }

  void Start() override {
    context_.emplace();
    const std::string& key = NextKey();
    began_ = Clock::now();
    if (rpc_ == Rpc::kPut) {
      put_.set_key(key);
      stub_->async()->Put(
          &*context_, &put_, &put_response_,
          [this](const grpc::Status& status) { Finish(status); });
    } else {
      get_.set_key(key);
      get_response_.Clear();
      stub_->async()->Get(
          &*context_, &get_, &get_response_,
          [this](const grpc::Status& status) { Finish(status); });
    }
  }

 private:
  void Finish(const grpc::Status& status) {
    if (!status.ok()) Fail("a call failed: " + status.error_message());
    const bool whole =
        rpc_ == Rpc::kPut ? put_response_.version() != 0
                          : get_response_.entry().value().size() == kValueBytes;
    if (!whole) Fail("an answer is not whole");
    AddLatency(began_);
    if (stopped()) {
      End();
    } else {
      Start();
    }
  }

  v1::TimeCacheService::Stub* const stub_;
  const Rpc rpc_;
  std::optional<grpc::ClientContext> context_;
  v1::PutRequest put_;
  v1::PutResponse put_response_;
  v1::GetRequest get_;
  v1::GetResponse get_response_;
  Clock::time_point began_;
};

bool IsPipeline(Rpc rpc) {
  return rpc == Rpc::kPipelinePut || rpc == Rpc::kPipelineGet;
}

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
    const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments);
    stubs_.push_back(v1::TimeCacheService::NewStub(channel));
    raw_stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
}

void LoadGenerator::Fill() {
  for (size_t begin = 0; begin < keys_.size(); begin += kFillBatch) {
    v1::ExecuteRequest request;
    request.set_namespace_("bench");
    const size_t end = std::min(begin + kFillBatch, keys_.size());
    for (size_t i = begin; i < end; ++i) {
      v1::PutRequest* const put = request.add_operations()->mutable_put();
      put->set_key(keys_[i]);
      put->set_value(std::string(kValueBytes, 'v'));
    }
    grpc::ClientContext context;
    v1::ExecuteResponse response;
    const grpc::Status status =
        stubs_[0]->Execute(&context, request, &response);
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

std::vector<std::unique_ptr<Caller>> LoadGenerator::MakeCallers(
    const Load& load, Turn* turn) {
  std::vector<std::unique_ptr<Caller>> callers;
  const auto count = static_cast<size_t>(turn->callers);
  const auto connections = static_cast<size_t>(load.connections);
  for (size_t i = 0; i < count; ++i) {
    if (IsPipeline(load.rpc)) {
      callers.push_back(std::make_unique<PipelineCaller>(
          turn, i, raw_stubs_[i].get(), load.rpc == Rpc::kPipelinePut,
          load.calls_in_flight));
    } else {
      callers.push_back(std::make_unique<UnaryCaller>(
          turn, i, stubs_[i % connections].get(), load.rpc));
    }
  }
  return callers;
}

Round LoadGenerator::Run(const Load& load, absl::Duration duration) {
  Turn turn = {keys_, load.connections *
                          (IsPipeline(load.rpc) ? 1 : load.calls_in_flight)};
  const std::vector<std::unique_ptr<Caller>> callers = MakeCallers(load, &turn);
  clockid_t server_clock;
  if (clock_getcpuclockid(server_pid_, &server_clock) != 0) {
    Fail("the server has ended");
  }
  const double server_cpu_s = CpuSeconds(server_clock);
  const double client_cpu_s = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const auto began = SteadyClock::now();
  for (const auto& caller : callers) caller->Start();
  absl::SleepFor(duration);
  turn.stopped = true;
  turn.ended.wait();
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
