// Unary calls of the benchmark, one at a time, with raw messages.
#include <optional>
#include <utility>

#include "client/cli/bench/bench_sender.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

const std::string& MethodOf(const BenchOptions& options, BenchKind kind) {
  static const auto& methods = *new std::array<std::string, kBenchKinds>{
      "/timecache.v1.TimeCacheService/Put",
      "/timecache.v1.TimeCacheService/Get",
      "/timecache.v1.TimeCacheService/Remove",
      "/timecache.v1.TimeCacheService/Contains",
      "/timecache.v1.TimeCacheService/Touch",
      "/timecache.v1.TimeCacheService/Append",
      "/timecache.v1.TimeCacheService/Combine",
      "/timecache.v1.TimeCacheService/Gather"};
  static const auto& execute =
      *new std::string("/timecache.v1.TimeCacheService/Execute");
  return options.batch > 1 ? execute : methods[static_cast<size_t>(kind)];
}

// Whether an error is about the operation, and not about the server, the
// namespace or the connection.
bool IsOperations(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

class BenchCalls final : public BenchSender, public BenchEvent {
 public:
  BenchCalls(const BenchOptions& options,
             std::shared_ptr<grpc::Channel> channel,
             grpc::CompletionQueue& queue, BenchKeys& keys,
             BenchListener& listener)
      : options_(options),
        keys_(keys),
        listener_(listener),
        messages_(options, 1),
        queue_(queue),
        stub_(std::move(channel)) {}

  void Start() override { open_ = true; }
  bool CanSend() const override { return open_ && !under_way_; }
  size_t in_flight() const override { return under_way_; }
  bool is_finished() const override { return !open_ && !under_way_; }

  void Send(int64_t due_ns) override {
    due_ns_ = due_ns;
    under_way_ = true;
    BenchMessage& message = messages_.Next(keys_);
    kind_ = message.kind();
    context_.emplace();
    call_ = stub_.PrepareUnaryCall(&*context_, MethodOf(options_, kind_),
                                   message.buffer(), &queue_);
    call_->StartCall();
    call_->Finish(&response_, &status_, static_cast<BenchEvent*>(this));
  }

  void Close() override { Cancel(); }

  void Cancel() override {
    open_ = false;
    if (under_way_) context_->TryCancel();
  }

  void Happened(bool) override {
    under_way_ = false;
    BenchCounts counts;
    const absl::Status status = Check(counts);
    if (status.ok()) {
      listener_.Answered(*this, due_ns_, counts);
    } else {
      open_ = false;
      listener_.Failed(status);
    }
  }

 private:
  absl::Status Check(BenchCounts& counts) {
    const absl::Status status = FromGrpcStatus(status_);
    if (status.ok() && options_.batch > 1) {
      return CheckExecuteResponse(bytes_.Of(response_), options_.batch,
                                  listener_, counts);
    }
    if (status.ok()) {
      counts = ScanUnary(kind_, bytes_.Of(response_));
      return status;
    }
    if (options_.batch > 1 || !IsOperations(status)) return status;
    counts = {.results = 1, .errors = 1};
    listener_.OperationFailed(status);
    return absl::OkStatus();
  }

  const BenchOptions& options_;
  BenchKeys& keys_;
  BenchListener& listener_;
  BenchMessages messages_;
  BenchBytes bytes_;
  grpc::CompletionQueue& queue_;
  grpc::GenericStub stub_;

  // Of the call that is under way.
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
  BenchKind kind_ = BenchKind::kPut;
  int64_t due_ns_ = 0;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  bool under_way_ = false;
  bool open_ = false;
};

}  // namespace

std::unique_ptr<BenchSender> MakeBenchCalls(
    const BenchOptions& options, std::shared_ptr<grpc::Channel> channel,
    grpc::CompletionQueue& queue, BenchKeys& keys, BenchListener& listener) {
  return std::make_unique<BenchCalls>(options, std::move(channel), queue, keys,
                                      listener);
}

}  // namespace timecache::cli
