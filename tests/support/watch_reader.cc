#include "tests/support/watch_reader.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/rpc.h"

namespace timecache::test {
namespace {

v1::WatchExpiredRequest RequestFor(const std::string& name) {
  v1::WatchExpiredRequest request;
  request.add_namespaces(name);
  return request;
}

}  // namespace

int64_t ToUs(const google::protobuf::Timestamp& time) {
  EXPECT_EQ(time.nanos() % 1000, 0);
  return time.seconds() * 1'000'000 + time.nanos() / 1000;
}

int64_t ToUs(const google::protobuf::Duration& duration) {
  EXPECT_EQ(duration.nanos() % 1000, 0);
  return duration.seconds() * 1'000'000 + duration.nanos() / 1000;
}

std::vector<std::string> KeysOf(const std::vector<v1::ExpiredEvent>& events) {
  std::vector<std::string> keys;
  for (const auto& event : events) keys.push_back(event.key());
  return keys;
}

template <typename Response>
void WatchReader::ReadFrom(
    std::unique_ptr<grpc::ClientReader<Response>> reader) {
  const std::shared_ptr<grpc::ClientReader<Response>> shared =
      std::move(reader);
  read_ = [shared](v1::WatchExpiredResponse* message) {
    if constexpr (std::is_same_v<Response, v1::WatchExpiredResponse>) {
      return shared->Read(message);
    } else {
      Response response;
      if (!shared->Read(&response)) return false;
      // A field that the method does not have would come along as unknown.
      EXPECT_TRUE(message->ParseFromString(response.SerializeAsString()));
      return true;
    }
  };
  finish_ = [shared] { return shared->Finish(); };
}

WatchReader::WatchReader(v1::TimeCacheService::Stub* stub,
                         const v1::WatchExpiredRequest& request) {
  SetDeadline(&context_);
  ReadFrom(stub->WatchExpired(&context_, request));
}

WatchReader::WatchReader(v1::TimeCacheService::Stub* stub,
                         const v1::ConsumeExpiredRequest& request) {
  SetDeadline(&context_);
  ReadFrom(stub->ConsumeExpired(&context_, request));
}

WatchReader::WatchReader(v1::TimeCacheService::Stub* stub,
                         const v1::WatchExpiringRequest& request) {
  SetDeadline(&context_);
  ReadFrom(stub->WatchExpiring(&context_, request));
}

WatchReader::WatchReader(v1::TimeCacheService::Stub* stub,
                         const std::string& name)
    : WatchReader(stub, RequestFor(name)) {}

WatchReader::~WatchReader() {
  Cancel();
  Drain();
}

std::optional<v1::WatchExpiredResponse> WatchReader::Next() {
  v1::WatchExpiredResponse message;
  if (end_.has_value() || !read_(&message)) return std::nullopt;
  Check(message);
  return message;
}

void WatchReader::Check(const v1::WatchExpiredResponse& message) {
  auto it = std::find_if(
      progress_.begin(), progress_.end(),
      [&](const Progress& p) { return p.name == message.namespace_(); });
  if (it == progress_.end()) {
    it = progress_.emplace(it);
    it->name = message.namespace_();
  }
  const int64_t watermark_us = ToUs(message.watermark());
  EXPECT_GE(watermark_us, it->watermark_us) << message.namespace_();
  for (const v1::ExpiredEvent& event : message.events()) {
    const int64_t death_us = ToUs(event.death_time());
    EXPECT_EQ(event.namespace_(), message.namespace_());
    EXPECT_GT(death_us, it->watermark_us)
        << "an event that the watermark before had promised";
    // In a group an event may come again, or wait for another of its key. What
    // is going to die is told when it comes into the map with less than its
    // lead time left.
    if (event.event_id() == 0 && event.cause() != v1::EXPIRY_CAUSE_EXPIRING) {
      EXPECT_GE(death_us, it->last_death_us);
    }
    it->last_death_us = death_us;
  }
  it->watermark_us = watermark_us;
  it->token = message.resume_token();
  lost_ += message.lost();
  events_ += static_cast<size_t>(message.events_size());
  largest_message_bytes_ =
      std::max(largest_message_bytes_, message.ByteSizeLong());
}

std::vector<v1::ExpiredEvent> WatchReader::ReadUpTo(int64_t time_us,
                                                    const std::string& name) {
  std::vector<v1::ExpiredEvent> events;
  while (auto message = Next()) {
    if (message->namespace_() != name) continue;
    for (v1::ExpiredEvent& event : *message->mutable_events()) {
      events.push_back(std::move(event));
    }
    if (ToUs(message->watermark()) >= time_us) return events;
  }
  const grpc::Status status = Drain();
  ADD_FAILURE() << "the stream ended before the watermark of " << name
                << " came to " << time_us << ": " << status.error_code() << " "
                << status.error_message();
  return events;
}

std::string WatchReader::token(const std::string& name) const {
  for (const Progress& progress : progress_) {
    if (progress.name == name) return progress.token;
  }
  return "";
}

grpc::Status WatchReader::Drain() {
  if (!end_.has_value()) {
    while (Next()) {
    }
    end_ = finish_();
  }
  return *end_;
}

}  // namespace timecache::test
