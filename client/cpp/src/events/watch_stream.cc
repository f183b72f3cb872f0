#include "client/cpp/src/events/watch_stream.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "client/cpp/src/data/convert.h"
#include "grpcpp/support/async_stream.h"

namespace timecache {
namespace {

using Stub = v1::TimeCacheService::Stub;

auto Prepare(Stub& stub, grpc::ClientContext* context,
             const v1::WatchExpiredRequest& request,
             grpc::CompletionQueue* queue) {
  return stub.PrepareAsyncWatchExpired(context, request, queue);
}

auto Prepare(Stub& stub, grpc::ClientContext* context,
             const v1::ConsumeExpiredRequest& request,
             grpc::CompletionQueue* queue) {
  return stub.PrepareAsyncConsumeExpired(context, request, queue);
}

auto Prepare(Stub& stub, grpc::ClientContext* context,
             const v1::WatchExpiringRequest& request,
             grpc::CompletionQueue* queue) {
  return stub.PrepareAsyncWatchExpiring(context, request, queue);
}

auto Prepare(Stub& stub, grpc::ClientContext* context,
             const v1::WatchChangesRequest& request,
             grpc::CompletionQueue* queue) {
  return stub.PrepareAsyncWatchChanges(context, request, queue);
}

// Moves the bytes out of the message, instead of copying them.
template <typename Response>
WatchBatch TakeBatch(Response& message) {
  WatchBatch batch;
  batch.ns = std::move(*message.mutable_namespace_());
  batch.watermark = FromProto(message.watermark());
  if constexpr (requires { message.delivered_watermark(); }) {
    batch.delivered_watermark = FromProto(message.delivered_watermark());
  }
  if constexpr (requires { message.lost(); }) batch.lost = message.lost();
  if constexpr (requires { message.resume_token(); }) {
    batch.resume_token = std::move(*message.mutable_resume_token());
  }
  if constexpr (requires { message.changes(); }) {
    batch.changes.reserve(message.changes_size());
    for (v1::ChangeEvent& change : *message.mutable_changes()) {
      if (change.omitted_value_bytes() > 0) ++batch.omitted_values;
      batch.changes.push_back(FromProto(std::move(change), batch.ns));
    }
  } else {
    batch.events.reserve(message.events_size());
    for (v1::ExpiredEvent& event : *message.mutable_events()) {
      if (event.omitted_value_bytes() > 0) ++batch.omitted_values;
      batch.events.push_back(FromProto(std::move(event)));
    }
  }
  return batch;
}

}  // namespace

absl::Duration SilenceMax(const WatchOptions& options, size_t addresses) {
  constexpr absl::Duration kOfSeveral = absl::Seconds(10);
  if (addresses == 1 || options.silence_max != absl::InfiniteDuration()) {
    return options.silence_max;
  }
  return std::max(kOfSeveral, 4 * options.heartbeat_interval.value_or(
                                      absl::ZeroDuration()));
}

class WatchStream::Reader {
 public:
  virtual ~Reader() = default;

  virtual void StartCall(void* tag) = 0;
  virtual void Read(void* tag) = 0;
  virtual void Finish(grpc::Status* status, void* tag) = 0;
  // The last message read.
  virtual WatchBatch Take() = 0;
};

template <typename Response>
class WatchStream::ReaderOf final : public Reader {
 public:
  explicit ReaderOf(std::unique_ptr<grpc::ClientAsyncReader<Response>> reader)
      : reader_(std::move(reader)) {}

  void StartCall(void* tag) override { reader_->StartCall(tag); }
  void Read(void* tag) override { reader_->Read(&message_, tag); }
  void Finish(grpc::Status* status, void* tag) override {
    reader_->Finish(status, tag);
  }
  WatchBatch Take() override { return TakeBatch(message_); }

 private:
  const std::unique_ptr<grpc::ClientAsyncReader<Response>> reader_;
  Response message_;
};

WatchStream::WatchStream(Stub& stub, const WatchRequest& request)
    : reader_(std::visit(
          [&](const auto& typed) -> std::unique_ptr<Reader> {
            return std::unique_ptr<Reader>(
                new ReaderOf(Prepare(stub, &context_, typed, &queue_)));
          },
          request)) {
  Ask(Pending::kStart);
}

WatchStream::~WatchStream() {
  context_.TryCancel();
  while (pending_ != Pending::kNothing) Await(kSteadyNever);
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

// One operation is in progress at a time, so that tags need not distinguish
// them.
void WatchStream::Ask(Pending operation) {
  pending_ = operation;
  waiting_since_ = SteadyNow();
  switch (operation) {
    case Pending::kStart:
      return reader_->StartCall(this);
    case Pending::kRead:
      return reader_->Read(this);
    case Pending::kFinish:
      return reader_->Finish(&status_, this);
    case Pending::kNothing:
      return;
  }
}

WatchStream::Event WatchStream::Await(SteadyTime until) {
  if (pending_ == Pending::kNothing) Ask(Pending::kRead);
  const gpr_timespec limit = ToGrpcDeadline(until);
  while (true) {
    void* tag;
    bool ok;
    if (queue_.AsyncNext(&tag, &ok, limit) !=
        grpc::CompletionQueue::GOT_EVENT) {
      return Event::kTimeout;
    }
    const Pending done = pending_;
    pending_ = Pending::kNothing;
    if (done == Pending::kFinish) return Event::kEnd;
    if (done == Pending::kRead && ok) return Event::kMessage;
    Ask(ok ? Pending::kRead : Pending::kFinish);
  }
}

WatchBatch WatchStream::Take() { return reader_->Take(); }

}  // namespace timecache
