// Streams of what expires in the raw: many of them on few connections, and no
// objects made of what they bring.

#ifndef TIMECACHED_BENCH_WATCH_WATCH_CONNECTION_H_
#define TIMECACHED_BENCH_WATCH_WATCH_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace timecache::bench {

// What is done when gRPC has done its part: the tag of an operation. Must be
// there until it has run.
class Step {
 public:
  explicit Step(std::function<void(bool ok, absl::Time now)> run)
      : run_(std::move(run)) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void Run(bool ok, absl::Time now) { run_(ok, now); }

 private:
  const std::function<void(bool ok, absl::Time now)> run_;
};

// A connection of its own, with one thread that runs its steps. Calls are added
// before Start(), by one thread; the steps end by themselves once all calls
// have.
class Connection {
 public:
  explicit Connection(const std::string& address);
  // All calls must have ended, or be about to.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  grpc::GenericStub* stub() { return &stub_; }
  grpc::CompletionQueue* queue() { return &queue_; }

  void AddCall() { ++calls_; }
  void Start();
  // In a step, the last one of a call.
  void EndCall();
  void Join();

 private:
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  // Of the thread, once it runs.
  int calls_ = 0;
  std::thread thread_;
};

// One call of WatchExpired or ConsumeExpired. Confined to its connection's
// thread, but for Start() and Cancel(), and once that thread has ended.
class WatchCall {
 public:
  // `method`: its name. Nothing is owned. Must outlive the connection's thread.
  WatchCall(Connection* connection, const char* method, absl::Time give_up);
  virtual ~WatchCall() = default;
  WatchCall(const WatchCall&) = delete;
  WatchCall& operator=(const WatchCall&) = delete;

  // `request`: the method's.
  void Start(const grpc::ByteBuffer& request);
  void Cancel() { context_.TryCancel(); }

 protected:
  // Reads on if it returns true, else when Read() is called.
  virtual bool OnMessage(grpc::ByteBuffer* message, absl::Time now) = 0;
  virtual void OnEnd(const grpc::Status& status) = 0;

  void Read() { call_->Read(&message_, &read_); }

 private:
  void OnStart(bool ok);
  void OnRead(bool ok, absl::Time now);
  void OnFinish();

  Connection* const connection_;
  const char* const method_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  Step start_;
  Step write_;
  Step read_;
  Step finish_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_WATCH_WATCH_CONNECTION_H_
