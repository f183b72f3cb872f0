// timecache.v1.ServerService: says what the server is and who does what to it,
// streams backups, and answers for the cluster.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_SERVER_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_SERVER_SERVICE_H_

#include <functional>

#include "server/edge/response/open_streams.h"
#include "server/rpc/admin/backup_stream.h"
#include "server/rpc/admin/cluster_source.h"
#include "server/rpc/admin/operator_calls.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/watch/tail_stream.h"
#include "timecache/v1/server.grpc.pb.h"

namespace timecache::server {

// Thread-safe. Calls are rare; GetServer is answered inline.
class ServerService final : public RawService<v1::ServerService::Service> {
 public:
  // Describes the server, and the use of its limits if `limits`.
  using DescribeServer =
      std::function<void(bool limits, v1::GetServerResponse* server)>;

  // None is owned, and all must outlive the service. `executor`, for backups
  // alone, may be null without a source of them.
  ServerService(const CallGate* gate, DescribeServer describe_server,
                Backups* backups, ClusterSource cluster, OpenStreams* streams,
                FairExecutor* executor, OperatorSource operators,
                TailStream::Parts tails, CountedCalls* counted);

 private:
  grpc::ServerUnaryReactor* AnswerServer(Context* context, const Bytes* request,
                                         Bytes* response);
  grpc::ServerUnaryReactor* AnswerCluster(Context* context,
                                          const Bytes* request,
                                          Bytes* response);
  grpc::ServerUnaryReactor* AnswerHandOver(Context* context,
                                           const Bytes* request,
                                           Bytes* response);

  const CallGate& gate_;
  const DescribeServer describe_server_;
  const ClusterSource cluster_;
  const OperatorSource operators_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_SERVER_SERVICE_H_
