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
    may_miss_ = message.may_miss();
    context_.emplace();
    call_ = stub_.PrepareUnaryCall(&*context_, message.method(),
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
    const absl::StatusOr<BenchCounts> counts = Read();
    if (counts.ok()) {
      listener_.Answered(*this, due_ns_, *counts);
    } else {
      open_ = false;
      listener_.Failed(counts.status());
    }
  }

 private:
  absl::StatusOr<BenchCounts> Read() {
    const absl::Status status = FromGrpcStatus(status_);
    if (options_.batch > 1) {
      if (!status.ok()) return status;
      return ReadResults(response_, options_.batch, listener_);
    }
    BenchCounts counts = {.results = 1};
    if (!status.ok()) {
      if (!IsOfOperation(status)) return status;
      counts.errors = 1;
      listener_.OperationFailed(status);
    } else if (may_miss_) {
      ++(response_.Length() == 0 ? counts.misses : counts.hits);
    }
    return counts;
  }

  const BenchOptions& options_;
  BenchKeys& keys_;
  BenchListener& listener_;
  BenchMessages messages_;
  grpc::CompletionQueue& queue_;
  grpc::GenericStub stub_;

  // Of the call that is under way.
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
  bool may_miss_ = false;
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
