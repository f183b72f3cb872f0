#include "bench/service/service_echo.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "bench/service/service_load.h"
#include "bench/service/service_servers.h"
#include "server/api/proto_time.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/data/pipeline_stream.h"

namespace timecache::bench {
namespace {

// As many bytes on the wire as nearly all real ones.
constexpr uint64_t kVersion = 1'700'000'000'723'456;
constexpr int64_t kTimeUs = 1'700'000'000'723'456;

grpc::ServerUnaryReactor* Ok(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

void FillEntry(const std::string& value, v1::Entry* entry) {
  entry->set_value(value);
  entry->set_version(kVersion);
  server::SetTime(kTimeUs, entry->mutable_put_time());
  server::SetTime(kTimeUs + 1, entry->mutable_deadline());
}

grpc::ByteBuffer Answer(bool is_put, const std::string& value) {
  v1::ExecuteResponse response;
  for (size_t i = 0; i < kOperations; ++i) {
    v1::OperationResult* const result = response.add_results();
    if (is_put) {
      result->mutable_put()->set_version(kVersion);
    } else {
      FillEntry(value, result->mutable_get()->mutable_entry());
    }
  }
  const grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Reads and writes at the same time, with the bound of the real one.
// Thread-safe. Lives until OnDone.
class EchoStream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  EchoStream(const grpc::ByteBuffer* puts, const grpc::ByteBuffer* gets)
      : puts_(puts), gets_(gets) {
    absl::MutexLock lock(&mu_);
    Pump();
  }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    reading_ = false;
    if (ok) {
      const bool is_put = request_.Length() > kOperations * kValueBytes;
      answers_.push_back(is_put ? puts_ : gets_);
    } else {
      ended_ = true;
    }
    Pump();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    answers_.pop_front();
    if (!ok) answers_.clear();
    Pump();
  }

  void OnDone() override {
    // The thread that ended the call may still hold the lock.
    { absl::MutexLock lock(&mu_); }
    delete this;
  }

 private:
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!writing_ && !answers_.empty()) {
      writing_ = true;
      StartWrite(answers_.front());
    }
    if (!reading_ && !ended_ &&
        answers_.size() < server::PipelineStream::kMaxAnswers) {
      reading_ = true;
      StartRead(&request_);
    }
    if (ended_ && !writing_ && !finished_) {
      finished_ = true;
      Finish(grpc::Status::OK);
    }
  }

  const grpc::ByteBuffer* const puts_;
  const grpc::ByteBuffer* const gets_;
  // Used by the one read that is in flight.
  grpc::ByteBuffer request_;

  absl::Mutex mu_;
  // The front one is being written while writing_.
  std::deque<const grpc::ByteBuffer*> answers_ ABSL_GUARDED_BY(mu_);
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

EchoService::EchoService()
    : value_(kValueBytes, 'v'),
      puts_(Answer(true, value_)),
      gets_(Answer(false, value_)) {}

grpc::ServerUnaryReactor* EchoService::Put(grpc::CallbackServerContext* context,
                                           const v1::PutRequest* /*request*/,
                                           v1::PutResponse* response) {
  response->set_version(kVersion);
  return Ok(context);
}

grpc::ServerUnaryReactor* EchoService::Get(grpc::CallbackServerContext* context,
                                           const v1::GetRequest* request,
                                           v1::GetResponse* response) {
  v1::Entry* const entry = response->mutable_entry();
  entry->set_key(request->key());
  FillEntry(value_, entry);
  return Ok(context);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
EchoService::Pipeline(grpc::CallbackServerContext* /*context*/) {
  return new EchoStream(&puts_, &gets_);
}

int ServeEcho() {
  // As Server::Start does.
  grpc::EnableDefaultHealthCheckService(true);
  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(server::kMaxValueBytesLimit) + (64 << 10));
  builder.RegisterService(&service);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return EXIT_FAILURE;
  return ServeUntilInputEnds("127.0.0.1:" + std::to_string(port));
}

}  // namespace timecache::bench
