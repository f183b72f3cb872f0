// gRPC's server reflection.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_H_
#define TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_H_

#include "grpcpp/grpcpp.h"

namespace timecache::server {

// Whether the server that is built serves grpc.reflection.v1alpha: to every
// caller, whatever the access rules, kMaxReflectionStreams at once. Where
// gRPC's library for it is linked, each server has it unless this turns it off.
void SetReflection(bool on, grpc::ServerBuilder* builder);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_REFLECTION_H_
