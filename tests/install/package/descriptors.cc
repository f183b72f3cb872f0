// Starts with the client and google/rpc's messages from elsewhere, and uses
// both: protobuf ends a process in which a file is registered twice.
#include <cstdio>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/error_details.h"
#include "timecache/client.h"

int main() {
  google::rpc::ErrorInfo info;
  info.set_reason("REASON");
  google::rpc::Status sent;
  sent.set_code(grpc::StatusCode::NOT_FOUND);
  sent.add_details()->PackFrom(info);
  grpc::Status error;
  google::rpc::Status read;
  const bool ok = grpc::SetErrorDetails(sent, &error).ok() &&
                  error.error_code() == grpc::StatusCode::NOT_FOUND &&
                  grpc::ExtractErrorDetails(error, &read).ok() &&
                  read.details(0).UnpackTo(&info) && info.reason() == "REASON";
  const timecache::Client client("unix:/nonexistent/timecached");
  const absl::Status status = client.Get("key").status();
  std::puts(status.ToString().c_str());
  return ok && absl::IsUnavailable(status) ? 0 : 1;
}
