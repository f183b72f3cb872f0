#include "server/rpc/admin/reflection_index.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/rpc/error_details.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "grpcpp/support/status_code_enum.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::server {
namespace {

using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using Files = absl::flat_hash_set<const FileDescriptor*>;

// The file and all that it imports.
void AddFile(const FileDescriptor* file, Files* to) {
  if (!to->insert(file).second) return;
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFile(file->dependency(i), to);
  }
}

void SetFiles(const FileDescriptor* file, ServerReflectionResponse* to) {
  Files files;
  AddFile(file, &files);
  auto* const response = to->mutable_file_descriptor_response();
  for (const FileDescriptor* each : files) {
    google::protobuf::FileDescriptorProto proto;
    each->CopyTo(&proto);
    proto.SerializeToString(response->add_file_descriptor_proto());
  }
}

void SetNotFound(absl::string_view what, ServerReflectionResponse* to) {
  to->mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  to->mutable_error_response()->set_error_message(
      absl::StrCat("this server has no ", what));
}

}  // namespace

ReflectionIndex::ReflectionIndex(std::vector<std::string> services)
    : pool_(*google::protobuf::DescriptorPool::generated_pool()),
      services_(std::move(services)) {
  // Errors carry them as Any, and by name: no file imports them.
  AddFile(google::rpc::ErrorInfo::descriptor()->file(), &files_);
  AddFile(v1::ErrorReason_descriptor()->file(), &files_);
  // This reference links its descriptor.
  AddFile(
      grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file(),
      &files_);
  for (const std::string& name : services_) {
    const auto* const service = pool_.FindServiceByName(name);
    if (service != nullptr) AddFile(service->file(), &files_);
  }
}

ServerReflectionResponse ReflectionIndex::Answer(
    const ServerReflectionRequest& request) const {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const FileDescriptor* file = nullptr;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& name : services_) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      return response;
    case ServerReflectionRequest::kFileByFilename:
      file = Served(pool_.FindFileByName(request.file_by_filename()));
      if (file == nullptr) SetNotFound("file of this name", &response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      file = Served(
          pool_.FindFileContainingSymbol(request.file_containing_symbol()));
      if (file == nullptr) SetNotFound("symbol of this name", &response);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      SetNotFound("extensions", &response);
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(
          grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message(
          "message_request must be set to what is asked");
      break;
  }
  if (file != nullptr) SetFiles(file, &response);
  return response;
}

const FileDescriptor* ReflectionIndex::Served(
    const FileDescriptor* file) const {
  return files_.contains(file) ? file : nullptr;
}

}  // namespace timecache::server
