// The service that timecached's is measured beside: what gRPC takes alone.

#ifndef TIMECACHED_BENCH_SERVICE_SERVICE_ECHO_H_
#define TIMECACHED_BENCH_SERVICE_SERVICE_ECHO_H_

#include <string>

#include "grpcpp/grpcpp.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::bench {

namespace echo_methods {
using S = v1::TimeCacheService;
// Served as the real ones are.
using All = S::WithCallbackMethod_Put<
    S::WithCallbackMethod_Get<S::WithRawCallbackMethod_Pipeline<S::Service>>>;
}  // namespace echo_methods

// Answers with as many bytes as the real service would, without looking at what
// was asked. Thread-safe.
class EchoService final : public echo_methods::All {
 public:
  EchoService();

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context,
                                const v1::PutRequest* request,
                                v1::PutResponse* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const v1::GetRequest* request,
                                v1::GetResponse* response) override;
  // Takes messages for puts if they are longer than their values.
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipeline(
      grpc::CallbackServerContext* context) override;

 private:
  const std::string value_;
  const grpc::ByteBuffer puts_;
  const grpc::ByteBuffer gets_;
};

// What its process does, in ServeTimecached's way.
int ServeEcho();

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVICE_ECHO_H_
