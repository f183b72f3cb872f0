// A stream of what expires in a test: of WatchExpired, ConsumeExpired or
// WatchExpiring.

#ifndef TIMECACHED_TESTS_SUPPORT_WATCH_READER_H_
#define TIMECACHED_TESTS_SUPPORT_WATCH_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::test {

int64_t ToUs(const google::protobuf::Timestamp& time);
int64_t ToUs(const google::protobuf::Duration& duration);

// In their order.
std::vector<std::string> KeysOf(const std::vector<v1::ExpiredEvent>& events);

// Reads a watch as a client does, and checks on every message what the API
// promises of all: watermarks that do not go back, events in order of death
// and after the watermark before. Every wait ends after rpc.h's kCallTimeout.
// Not thread-safe.
class WatchReader {
 public:
  // Starts the call; the first message comes only with Next.
  WatchReader(v1::TimeCacheService::Stub* stub,
              const v1::WatchExpiredRequest& request);
  WatchReader(v1::TimeCacheService::Stub* stub,
              const v1::ConsumeExpiredRequest& request);
  WatchReader(v1::TimeCacheService::Stub* stub,
              const v1::WatchExpiringRequest& request);
  // WatchExpired on one namespace, from NOW.
  WatchReader(v1::TimeCacheService::Stub* stub, const std::string& name);
  // Cancels a call that has not been finished.
  ~WatchReader();
  WatchReader(const WatchReader&) = delete;
  WatchReader& operator=(const WatchReader&) = delete;

  // Nothing at the end of the stream. The responses of the other methods come
  // as WatchExpired's, too: the fields that they have agree.
  std::optional<v1::WatchExpiredResponse> Next();

  // Reads until the watermark of `name` is at least `time_us` and returns the
  // events of that namespace on the way. Fails the test at the stream's end.
  std::vector<v1::ExpiredEvent> ReadUpTo(int64_t time_us,
                                         const std::string& name = "default");

  // Reads the rest, and returns how the stream ended; again if called again.
  grpc::Status Drain();
  void Cancel() { context_.TryCancel(); }

  // The token of the last message of `name`; empty if there was none.
  std::string token(const std::string& name = "default") const;

  // Of all messages so far.
  uint64_t lost() const { return lost_; }
  size_t largest_message_bytes() const { return largest_message_bytes_; }
  size_t events() const { return events_; }

 private:
  // What was read of one namespace.
  struct Progress {
    std::string name;
    int64_t watermark_us = INT64_MIN;
    int64_t last_death_us = INT64_MIN;
    std::string token;
  };

  template <typename Response>
  void ReadFrom(std::unique_ptr<grpc::ClientReader<Response>> reader);
  void Check(const v1::WatchExpiredResponse& message);

  grpc::ClientContext context_;
  // The call's Read and Finish.
  std::function<bool(v1::WatchExpiredResponse*)> read_;
  std::function<grpc::Status()> finish_;
  std::vector<Progress> progress_;
  uint64_t lost_ = 0;
  size_t largest_message_bytes_ = 0;
  size_t events_ = 0;
  // Once it has ended.
  std::optional<grpc::Status> end_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_WATCH_READER_H_
