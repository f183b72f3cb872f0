// The stream by which plain calls on one namespace go together. Internal to the
// client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_STREAM_H_
#define TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_STREAM_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "client/cpp/src/shared/queue_event.h"
#include "grpcpp/completion_queue.h"
#include "timecache/v1/data.pb.h"

namespace timecache {

// Most calls of a message, and most bytes of them. One that is larger than
// kSharedCallBytesMax has an RPC of its own, so that others do not wait for it.
inline constexpr size_t kSharedMessageCallsMax = 512;
inline constexpr size_t kSharedMessageBytesMax = 256 << 10;
inline constexpr size_t kSharedCallBytesMax = 64 << 10;
// Most calls that wait for their message, and most bytes of them.
inline constexpr size_t kSharedCallsMax = 8192;
inline constexpr size_t kSharedBytesMax = 8 << 20;

struct SharedMessage;

// How many messages may be unanswered; while there are as many, calls gather for
// the next one. One: of a server that is near, a call waits less for its turn than
// more messages cost. Where the shortest of the last answers took long, those of a
// server that is far or that stores what it answers, a call waited as long again:
// then as many as the server stores together.
class MessageWindow {
 public:
  static constexpr size_t kNear = 1;
  static constexpr size_t kFar = 4;
  static constexpr std::chrono::milliseconds kFarAnswer{2};
  // After which the shortest is taken anew.
  static constexpr int kAnswers = 64;

  size_t messages() const { return messages_; }
  void CountAnswer(SteadyTime::duration took) {
    shortest_ = std::min(shortest_, took);
    if (++answers_ < kAnswers) return;
    messages_ = shortest_ >= kFarAnswer ? kFar : kNear;
    shortest_ = SteadyTime::duration::max();
    answers_ = 0;
  }

 private:
  size_t messages_ = kNear;
  SteadyTime::duration shortest_ = SteadyTime::duration::max();
  int answers_ = 0;
};

// A call on its way through a CallStream. Belongs to its caller, who may not
// touch it until it has ended.
struct SharedCall {
  std::unique_ptr<v1::Operation> operation;
  size_t bytes = 0;  // Of the operation.
  SteadyTime deadline;
  // Called when it has ended. Null: a thread waits for it.
  std::function<void()> done;

  // How it ended: with an answer; with `status`; or as if it had not begun,
  // since the stream has ended and nothing of it was applied.
  enum class End { kAnswered, kFailed, kAgain };
  End end = End::kFailed;
  v1::OperationResult answer;
  Endpoint* endpoint = nullptr;  // Whose answer it is.
  absl::Status status;

  // Of the stream.
  std::atomic<bool> has_ended{false};
  SharedMessage* message = nullptr;
  size_t index = 0;  // In the message.
  bool is_cancelled = false;
};

// Whether calls are driven by a thread, which ends them when their time is up.
class StreamDriver {
 public:
  virtual ~StreamDriver() = default;
  virtual grpc::CompletionQueue& queue() = 0;
  // CallStream::Expire is to be called by then.
  virtual void ExpireAt(SteadyTime time) = 0;
};

// Calls on one namespace, in messages of one Pipeline of the current endpoint.
//
// A message goes as soon as there is a call for it and fewer are under way than
// MessageWindow says. Without a driver one of the threads that wait leads: it sends
// the next message and polls for answers until its own call has ended, then
// another does. So one caller alone switches to no other thread, and of many one
// system call wakes all whose answers came in one message.
//
// Thread-safe. A stream that broke is opened again by the next call.
class CallStream : public std::enable_shared_from_this<CallStream> {
 public:
  // What is not null outlives this. Of a driver's, Close comes before the last
  // reference goes.
  CallStream(Endpoints& endpoints, std::string ns, StreamDriver* driver);
  ~CallStream();

  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  // Whether a call would go without opening the stream.
  bool IsOpen();
  // Waits until the call has ended. False: there is no room.
  bool Run(SharedCall& call, const std::stop_token& cancellation);

  // The same with a driver: returns at once; `done` runs on its thread.
  bool Start(SharedCall& call);
  // Ends the call soon. Only before `done` has returned.
  void Cancel(SharedCall& call);
  // Ends calls that are cancelled or whose time is up; the next deadline.
  SteadyTime Expire();
  void Close();
  // References that keep this alive for gRPC.
  long kept();

  // Of the last message that was sent or answered.
  SteadyTime used_at();

 private:
  enum class Step { kWritten, kRead, kFinished };
  struct Rpc;
  // Whom to tell, without the lock.
  struct Ended {
    std::vector<std::shared_ptr<SharedMessage>> messages;
    std::vector<SharedCall*> calls;
  };
  using Messages = std::deque<std::shared_ptr<SharedMessage>>;

  std::shared_ptr<SharedMessage> Add(SharedCall& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoom(const SharedCall& call) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(SharedMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  bool IsAtCurrent() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  // Polls as the leader; false once the call's time is up.
  bool Lead(SharedCall& call, const std::stop_token& cancellation);
  bool Poll(gpr_timespec deadline);
  // Notices the end of a stream that no thread has polled for a while.
  void LookAtIdleStream();
  // Whether a thread polls that goes on with it.
  bool HasLeader() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Wakes a thread that may lead, if one waits.
  void Offer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void Happened(Rpc& rpc, Step step, bool ok);
  void OnRead(Rpc& rpc, bool ok, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Retire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The stream has ended with this, or is given up for it.
  void Fail(const absl::Status& why, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<CallStream> TakeKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Takes a call out of its message, whose answer is dropped.
  void Leave(SharedCall& call, absl::Status why, Ended& ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A server that has answered none of what was sent while it was awaited.
  void GiveUpIfSilent(Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(SharedCall& call, const std::shared_ptr<SharedMessage>& message,
           Ended& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Tell(const Ended& ended);

  Endpoints& endpoints_;
  const std::string ns_;
  StreamDriver* const driver_;
  grpc::CompletionQueue own_queue_;  // Without a driver.
  grpc::CompletionQueue& queue_;
  std::atomic<bool> is_led_{false};

  absl::Mutex mu_;
  Messages sent_ ABSL_GUARDED_BY(mu_);
  Messages waiting_ ABSL_GUARDED_BY(mu_);  // The last one is being filled.
  size_t calls_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  size_t bytes_waiting_ ABSL_GUARDED_BY(mu_) = 0;
  SharedCall* leading_ ABSL_GUARDED_BY(mu_) = nullptr;  // Whose thread polls.
  // The driver's thread runs `done`s, and then sends what they have added.
  bool is_telling_ ABSL_GUARDED_BY(mu_) = false;
  MessageWindow window_ ABSL_GUARDED_BY(mu_);
  SteadyTime used_at_ ABSL_GUARDED_BY(mu_);
  SteadyTime expire_at_ ABSL_GUARDED_BY(mu_) = kSteadyNever;
  std::unique_ptr<Rpc> rpc_ ABSL_GUARDED_BY(mu_);
  // Of which events are still to come.
  std::vector<std::unique_ptr<Rpc>> retired_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<CallStream> keep_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_CALL_STREAM_H_
