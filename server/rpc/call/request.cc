#include "server/rpc/call/request.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// To look for unknown fields, by reflection, takes 3,000 instructions: in a
// smaller request they cost less than the call itself.
constexpr size_t kMaxUnknownBytes = 1024;

bool Parse(const grpc::ByteBuffer& bytes,
           google::protobuf::MessageLite* request) {
  // A call may end without having sent a message.
  if (!bytes.Valid()) return false;
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok()) {
    return request->ParseFromArray(slice.begin(),
                                   static_cast<int>(slice.size()));
  }
  // Shares the bytes: a reader takes its buffer apart.
  grpc::ByteBuffer shared(bytes);
  grpc::ProtoBufferReader reader(&shared);
  return reader.status().ok() && request->ParseFromZeroCopyStream(&reader);
}

}  // namespace

absl::Status CheckRequestSize(const grpc::ByteBuffer& bytes,
                              absl::string_view field) {
  const size_t size = bytes.Valid() ? bytes.Length() : 0;
  if (size <= kMaxRequestBytes) return absl::OkStatus();
  const std::string problem =
      absl::StrCat("at most ", kMaxRequestBytes, " bytes, not ", size);
  if (!field.empty()) {
    return InvalidField(
        field, absl::StrCat("must be smaller: a request has ", problem));
  }
  return ErrorWithReason(
      absl::StatusCode::kInvalidArgument, Reason::kRequestTooLarge,
      absl::StrCat("the request is too large: it has ", problem),
      {{"max_request_bytes", absl::StrCat(kMaxRequestBytes)}});
}

absl::Status MalformedRequest(absl::string_view type) {
  return ErrorWithReason(
      absl::StatusCode::kInvalidArgument, Reason::kMalformedRequest,
      absl::StrCat("the request is not a ", type,
                   ": generate it from the service's proto"));
}

absl::Status ParseRequest(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* request,
                          absl::string_view large_field) {
  absl::Status status = CheckRequestSize(bytes, large_field);
  if (status.ok() && !Parse(bytes, request)) {
    status = MalformedRequest(request->GetTypeName());
  }
  return status;
}

absl::Status TakeRequest(const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         absl::string_view large_field) {
  absl::Status status = ParseRequest(bytes, request, large_field);
  if (bytes.Valid() && bytes.Length() > kMaxUnknownBytes) {
    request->DiscardUnknownFields();
  }
  // gRPC's, which reads it no more; its API gives handlers a const one.
  const_cast<grpc::ByteBuffer&>(bytes).Clear();
  return status;
}

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message,
                         ResponseAccount* account, int64_t small_bytes) {
  grpc::Slice slice = NewSlice(account, message.ByteSizeLong(), small_bytes);
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace timecache::server
