// A Pipeline call of the benchmark, with raw messages.
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/bench/bench_sender.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "timecache/status.h"

namespace timecache::cli {
namespace {

constexpr char kMethod[] = "/timecache.v1.TimeCacheService/Pipeline";

// An event that calls a member function.
template <typename Owner>
class MemberEvent final : public BenchEvent {
 public:
  using Method = void (Owner::*)(bool ok);

  MemberEvent(Owner* owner, Method method) : owner_(owner), method_(method) {}
  void Happened(bool ok) override { (owner_->*method_)(ok); }

 private:
  Owner* const owner_;
  const Method method_;
};

class BenchStream final : public BenchSender {
 public:
  BenchStream(const BenchOptions& options,
              std::shared_ptr<grpc::Channel> channel,
              grpc::CompletionQueue& queue, BenchKeys& keys,
              BenchListener& listener)
      : depth_(options.depth),
        operations_(options.batch),
        keys_(keys),
        listener_(listener),
        messages_(options, options.depth),
        stub_(std::move(channel)),
        call_(stub_.PrepareCall(&context_, kMethod, &queue)) {}

  void Start() override {
    events_ = 1;
    call_->StartCall(&started_);
  }
  bool CanSend() const override { return open_ && in_flight() < depth_; }
  size_t in_flight() const override { return due_ns_.size(); }
  bool is_finished() const override { return events_ == 0; }
  void Cancel() override { context_.TryCancel(); }

  void Send(int64_t due_ns) override {
    due_ns_.push_back(due_ns);
    if (writing_) {
      ++waiting_;  // gRPC takes one write at a time.
    } else {
      Write();
    }
  }

  void Close() override {
    if (is_finished()) return;
    if (!open_ || in_flight() > 0) return Cancel();
    open_ = false;
    closing_ = true;
    if (!writing_) WritesDone();
  }

 private:
  void Write() {
    writing_ = true;
    ++events_;
    call_->Write(messages_.Next(keys_).buffer(), &wrote_);
  }

  void WritesDone() {
    closing_ = false;
    ++events_;
    call_->WritesDone(&wrote_);
  }

  void Read() {
    ++events_;
    call_->Read(&response_, &read_);
  }

  void OnStarted(bool ok) {
    --events_;
    open_ = ok;
    if (ok) return Read();
    Finish();
  }

  void OnWrote(bool ok) {
    --events_;
    writing_ = false;
    // The read reports the error.
    if (!ok) return;
    if (waiting_ > 0) {
      --waiting_;
      Write();
    } else if (closing_) {
      WritesDone();
    }
  }

  void OnRead(bool ok) {
    --events_;
    closing_ = closing_ && ok;
    if (!ok) return Finish();
    if (due_ns_.empty()) {
      return Fail(absl::InternalError("an answer to nothing"));
    }
    const auto counts = ReadResults(response_, operations_, listener_);
    if (!counts.ok()) return Fail(counts.status());
    const int64_t due_ns = due_ns_.front();
    due_ns_.pop_front();
    // The next message goes first: a read that waits sends an update of the
    // flow control's window on its own.
    listener_.Answered(*this, due_ns, *counts);
    Read();
  }

  // For a reason of ours.
  void Fail(const absl::Status& why) {
    failed_ = true;
    listener_.Failed(why);
    Cancel();
    Finish();
  }

  void Finish() {
    was_open_ = std::exchange(open_, false);
    ++events_;
    call_->Finish(&status_, &finished_);
  }

  void OnFinished(bool) {
    --events_;
    if (failed_) return;
    if (!status_.ok()) return listener_.Failed(FromGrpcStatus(status_));
    if (was_open_) {
      listener_.Failed(absl::UnavailableError("the server ended the stream"));
    }
  }

  const size_t depth_;
  const size_t operations_;
  BenchKeys& keys_;
  BenchListener& listener_;
  BenchMessages messages_;

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer response_;
  grpc::Status status_;

  MemberEvent<BenchStream> started_{this, &BenchStream::OnStarted};
  MemberEvent<BenchStream> wrote_{this, &BenchStream::OnWrote};
  MemberEvent<BenchStream> read_{this, &BenchStream::OnRead};
  MemberEvent<BenchStream> finished_{this, &BenchStream::OnFinished};

  std::deque<int64_t> due_ns_;  // Of what is in flight, in order.
  size_t waiting_ = 0;          // Of these, those that are not being written.
  int events_ = 0;              // That are to come.
  bool open_ = false;           // Neither closed nor broken.
  bool was_open_ = false;       // When it was found to be at its end.
  bool closing_ = false;        // And the server does not know.
  bool writing_ = false;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<BenchSender> MakeBenchStream(
    const BenchOptions& options, std::shared_ptr<grpc::Channel> channel,
    grpc::CompletionQueue& queue, BenchKeys& keys, BenchListener& listener) {
  return std::make_unique<BenchStream>(options, std::move(channel), queue, keys,
                                       listener);
}

}  // namespace timecache::cli
