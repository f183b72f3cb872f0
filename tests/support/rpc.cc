#include "tests/support/rpc.h"

#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace timecache::test {
ErrorParts PartsOf(const grpc::Status& status) {
  ErrorParts parts;
  parts.code = status.error_code();
  parts.message = status.error_message();
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  if (status.error_details().empty()) return parts;
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    if (detail.UnpackTo(&info)) {
      parts.domain = info.domain();
      EXPECT_TRUE(v1::ErrorReason_Parse(info.reason(), &parts.reason))
          << info.reason();
      parts.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (detail.UnpackTo(&bad_request)) {
      EXPECT_EQ(bad_request.field_violations_size(), 1);
      parts.field = bad_request.field_violations(0).field();
      parts.description = bad_request.field_violations(0).description();
    } else if (detail.UnpackTo(&retry)) {
      parts.retry_after = absl::Seconds(retry.retry_delay().seconds()) +
                          absl::Nanoseconds(retry.retry_delay().nanos());
    } else {
      ADD_FAILURE() << "unknown detail " << detail.type_url();
    }
  }
  return parts;
}

void ExpectError(const grpc::Status& status, grpc::StatusCode code,
                 v1::ErrorReason reason, const std::string& part_of_message) {
  const ErrorParts parts = PartsOf(status);
  EXPECT_EQ(parts.code, code) << parts.message;
  EXPECT_EQ(parts.domain, "timecached") << parts.message;
  EXPECT_EQ(v1::ErrorReason_Name(parts.reason), v1::ErrorReason_Name(reason))
      << parts.message;
  EXPECT_NE(parts.message.find(part_of_message), std::string::npos)
      << parts.message << " should name " << part_of_message;
}

void ExpectInvalid(const grpc::Status& status, const std::string& field,
                   const std::string& limit) {
  ExpectError(status, grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD,
              limit);
  const ErrorParts parts = PartsOf(status);
  EXPECT_EQ(parts.field, field) << parts.message;
  EXPECT_EQ(parts.description, parts.message);
}

RawStream::RawStream(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& method, const std::string& request) {
  SetDeadline(&context_);
  call_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_);
  call_->StartCall(nullptr);
  if (!Await()) return;
  const grpc::Slice slice(request);
  call_->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  Await();
}

RawStream::~RawStream() {
  context_.TryCancel();
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Await();
}

// Waits for the operation under way; whether it succeeded.
bool RawStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

std::optional<std::string> RawStream::Next() {
  grpc::ByteBuffer message;
  call_->Read(&message, nullptr);
  if (!Await()) return std::nullopt;
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::string CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                    const std::string& method, const std::string& request) {
  return RawStream(channel, method, request).Next().value_or("");
}

int HealthOf(const std::shared_ptr<grpc::Channel>& channel) {
  // HealthCheckResponse{status = 1} is the field's tag and its number.
  const std::string answer =
      CallRaw(channel, "/grpc.health.v1.Health/Check", "");
  return answer.size() == 2 ? answer[1] : -1;
}

}  // namespace timecache::test
