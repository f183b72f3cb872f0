// Starts with proto/google/rpc and Google's own of the same names in one
// process, as a program does that links the C++ client and one of Google's
// libraries. One of the two takes the place of the other: if they differed,
// this would not start.
#include <cstdio>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

int main() {
  google::rpc::ErrorInfo info;
  info.set_reason("REASON");
  google::rpc::QuotaFailure sent;
  sent.add_violations()->set_quota_value(3);
  google::rpc::Status status;
  status.add_details()->PackFrom(info);
  status.add_details()->PackFrom(sent);
  google::rpc::Status read;
  google::rpc::QuotaFailure received;
  const bool ok = read.ParseFromString(status.SerializeAsString()) &&
                  read.details(0).UnpackTo(&info) &&
                  read.details(1).UnpackTo(&received) &&
                  received.violations(0).quota_value() == 3;
  std::puts(ok ? "both are in one program" : "they differ");
  return ok ? 0 : 1;
}
