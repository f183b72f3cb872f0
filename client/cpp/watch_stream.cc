#include "client/cpp/watch_stream.h"

namespace timecache::inline client {

WatchStream::WatchStream(v1::TimeCacheService::Stub& stub,
                         const v1::WatchExpiredRequest& request)
    : reader_(stub.PrepareAsyncWatchExpired(&context_, request, &queue_)) {
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

// One operation is under way at a time, so that tags need not tell them apart.
void WatchStream::Ask(Pending operation) {
  pending_ = operation;
  waiting_since_ = SteadyNow();
  switch (operation) {
    case Pending::kStart:
      return reader_->StartCall(this);
    case Pending::kRead:
      return reader_->Read(&message_, this);
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

}  // namespace timecache::inline client
