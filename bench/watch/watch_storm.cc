#include "bench/watch/watch_storm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::bench {
namespace {

constexpr uint64_t kOperationsPerMessage = 1'000;
constexpr int64_t kDayUs = int64_t{86'400} * 1'000'000;
// Wide enough that one of its multiples comes within 2 ms of any moment.
constexpr int64_t kLeastWidthUs = 10 * kDayUs;
// With room for what an event takes beside its key and value.
constexpr uint64_t kRetentionBytesPerEvent =
    4 * (kStormKeyBytes + kStormValueBytes);
constexpr uint64_t kLeastRetentionBytes = 64 << 20;
// The shortest that there is: every entry dies at the bucket's end, whenever in
// the bucket it was put.
constexpr int kTtlNanos = 1'000'000;

v1::ExecuteRequest Puts(const std::string& name, uint64_t first,
                        uint64_t count) {
  v1::ExecuteRequest request;
  request.set_namespace_(name);
  AppendPuts(first, count, &request);
  for (v1::Operation& operation : *request.mutable_operations()) {
    operation.mutable_put()->mutable_ttl()->set_nanos(kTtlNanos);
  }
  return request;
}

uint64_t CountPuts(const v1::ExecuteResponse& response) {
  uint64_t puts = 0;
  for (const v1::OperationResult& result : response.results()) {
    if (result.has_error()) Fail("a put failed: " + result.error().message());
    if (result.put().version() != 0) ++puts;
  }
  return puts;
}

}  // namespace

void Fail(const std::string& what) {
  std::fprintf(stderr, "\nwatch_bench: %s\n", what.c_str());
  std::fflush(stderr);
  // Other threads are at work on what destructors would take away.
  std::_Exit(EXIT_FAILURE);
}

void AppendPuts(uint64_t first, uint64_t count, v1::ExecuteRequest* request) {
  for (uint64_t i = first; i < first + count; ++i) {
    v1::PutRequest* const put = request->add_operations()->mutable_put();
    put->set_key(absl::StrFormat("key-%012d", i));
    put->set_value(std::string(kStormValueBytes, 'v'));
  }
}

Storm::Storm(std::shared_ptr<grpc::Channel> channel, uint64_t entries,
             absl::Duration lead, absl::Time give_up)
    : channel_(std::move(channel)),
      name_(absl::StrCat("storm-", getpid())),
      entries_(entries),
      give_up_(give_up) {
  const int64_t wanted_us = absl::ToUnixMicros(absl::Now() + lead);
  const int64_t buckets_since_epoch = wanted_us / kLeastWidthUs;
  const int64_t width_us = wanted_us / buckets_since_epoch;
  death_ = absl::FromUnixMicros(width_us * buckets_since_epoch);
  Create(absl::Microseconds(width_us));
}

Storm::~Storm() {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(give_up_));
  v1::DeleteNamespaceRequest request;
  request.set_name(name_);
  v1::DeleteNamespaceResponse response;
  const grpc::Status status =
      v1::NamespaceService::NewStub(channel_)->DeleteNamespace(
          &context, request, &response);
  if (!status.ok()) {
    std::fprintf(stderr, "watch_bench: namespace %s is left behind: %s\n",
                 name_.c_str(), status.error_message().c_str());
  }
}

void Storm::Create(absl::Duration width) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(give_up_));
  v1::CreateNamespaceRequest request;
  request.set_name(name_);
  v1::NamespaceOptions* const options = request.mutable_options();
  const absl::Duration seconds = absl::Floor(width, absl::Seconds(1));
  options->mutable_ttl()->set_seconds(absl::ToInt64Seconds(seconds));
  options->mutable_ttl()->set_nanos(
      static_cast<int>(absl::ToInt64Nanoseconds(width - seconds)));
  options->set_num_buckets(2);
  options->set_event_retention_bytes(kLeastRetentionBytes +
                                     entries_ * kRetentionBytesPerEvent);
  v1::CreateNamespaceResponse response;
  const grpc::Status status =
      v1::NamespaceService::NewStub(channel_)->CreateNamespace(
          &context, request, &response);
  if (!status.ok()) {
    Fail("cannot make a namespace: " + status.error_message());
  }
}

absl::Duration Storm::Fill() {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(give_up_));
  const auto stub = v1::TimeCacheService::NewStub(channel_);
  const auto stream = stub->Pipeline(&context);
  uint64_t puts = 0;
  std::thread reader([&stream, &puts] {
    v1::ExecuteResponse response;
    while (stream->Read(&response)) puts += CountPuts(response);
  });
  for (uint64_t i = 0; i < entries_; i += kOperationsPerMessage) {
    const uint64_t count = std::min(kOperationsPerMessage, entries_ - i);
    if (!stream->Write(Puts(name_, i, count))) break;
  }
  stream->WritesDone();
  reader.join();
  const absl::Duration before = death_ - absl::Now();
  const grpc::Status status = stream->Finish();
  if (!status.ok()) Fail("cannot fill: " + status.error_message());
  if (puts != entries_) {
    Fail(absl::StrFormat("only %d of %d entries were put", puts, entries_));
  }
  if (before <= absl::ZeroDuration()) {
    Fail(absl::StrCat("filling ended ", absl::FormatDuration(-before),
                      " after the deadline: raise --lead-ms"));
  }
  return before;
}

}  // namespace timecache::bench
