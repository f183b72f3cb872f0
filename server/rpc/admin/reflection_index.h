// Descriptions of a server's services.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_INDEX_H_
#define TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_INDEX_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "grpc/reflection/v1/reflection.pb.h"

namespace timecache::server {

// Answers the questions of gRPC's server reflection, from the descriptors that
// are compiled into this program. Only the given services are there, the files
// that they need, and the details of errors.
//
// Immutable, so thread-safe. An answer is at most those files, some tens of
// KiB.
class ReflectionIndex {
 public:
  // Full names; one that is not compiled in is listed and has no file.
  explicit ReflectionIndex(std::vector<std::string> services);

  grpc::reflection::v1::ServerReflectionResponse Answer(
      const grpc::reflection::v1::ServerReflectionRequest& request) const;

 private:
  const google::protobuf::FileDescriptor* Served(
      const google::protobuf::FileDescriptor* file) const;

  const google::protobuf::DescriptorPool& pool_;
  const std::vector<std::string> services_;
  absl::flat_hash_set<const google::protobuf::FileDescriptor*> files_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_INDEX_H_
