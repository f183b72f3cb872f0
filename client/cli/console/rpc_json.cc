#include "client/cli/console/rpc_json.h"

#include <malloc.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "google/rpc/error_details.pb.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "nlohmann/json.hpp"

namespace timecache::cli {
namespace {

constexpr size_t kLargeMessageBytes = 256 << 10;

constexpr char kTypeUrlPrefix[] = "type.googleapis.com";

google::protobuf::util::TypeResolver* Types() {
  static auto* const types =
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypeUrlPrefix, google::protobuf::DescriptorPool::generated_pool());
  return types;
}

std::string TypeUrl(const google::protobuf::Descriptor& type) {
  return absl::StrCat(kTypeUrlPrefix, "/", type.full_name());
}

}  // namespace

absl::StatusOr<std::string> BinaryOf(const google::protobuf::Descriptor& type,
                                     const std::string& json) {
  std::string binary;
  const auto status = google::protobuf::util::JsonToBinaryString(
      Types(), TypeUrl(type), json, &binary);
  if (status.ok()) return binary;
  return absl::InvalidArgumentError(absl::StrCat(
      "the request: ",
      absl::string_view(status.message().data(), status.message().size())));
}

absl::Status AppendJson(const google::protobuf::Descriptor& type,
                        grpc::ByteBuffer* binary, std::string* json) {
  // One large message at a time: protobuf makes a tree of nodes of it.
  static auto* const large = new absl::Mutex;
  const bool is_large = binary->Length() > kLargeMessageBytes;
  absl::MutexLockMaybe lock(is_large ? large : nullptr);
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  grpc::ProtoBufferReader reader(binary);
  google::protobuf::io::StringOutputStream output(json);
  const auto status = google::protobuf::util::BinaryToJsonStream(
      Types(), TypeUrl(type), &reader, &output, options);
  // The heap would keep it all.
  if (is_large) malloc_trim(0);
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the response has no JSON: ",
      absl::string_view(status.message().data(), status.message().size())));
}

std::string ErrorJson(const absl::Status& status) {
  nlohmann::ordered_json error = {
      {"code", absl::StatusCodeToString(status.code())},
      {"message", std::string(status.message())}};
  if (const auto details =
          status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo")) {
    google::rpc::ErrorInfo info;
    if (info.ParseFromString(std::string(*details))) {
      error["reason"] = info.reason();
      error["metadata"] = nlohmann::ordered_json::object();
      for (const auto& [key, value] : info.metadata()) {
        error["metadata"][key] = value;
      }
    }
  }
  return nlohmann::ordered_json({{"error", error}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace timecache::cli
