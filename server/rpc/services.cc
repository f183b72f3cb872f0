#include "server/rpc/services.h"

#include <utility>

#include "server/api/proto_time.h"
#include "server/base/check.h"

namespace timecache::server {
Services::Services(const ServerOptions& options, const Parts& parts,
                   ServerService::DescribeServer describe_server)
    : health_(parts.guard, parts.ledger, parts.counted_calls),
      backups_{options.backup_source,
               ToDuration(options.limits.response_timeout())},
      backup_executor_(options.backup_source == nullptr
                           ? nullptr
                           : std::make_unique<FairExecutor>()),
      time_cache_(parts.gate, parts.store, parts.hub, parts.streams, &executor_,
                  options.limits, parts.tails, parts.counted_calls),
      namespaces_(parts.gate,
                  {parts.store, options.observer, options.default_partitions,
                   options.cluster.owners_of},
                  parts.counted_calls),
      groups_(parts.gate, {parts.store, options.observer}, parts.counted_calls),
      server_(parts.gate, std::move(describe_server), &backups_,
              options.cluster, parts.streams, backup_executor_.get(),
              parts.operators, {parts.store, parts.hub, parts.tails},
              parts.counted_calls),
      unknown_(parts.guard) {
  // Called in gRPC's threads, which swallow what is thrown: the call would hang.
  TIMECACHED_CHECK(options.observer != nullptr);
  if (options.virtual_clock != nullptr) {
    TIMECACHED_CHECK(options.flush != nullptr);
    virtual_clock_ = std::make_unique<VirtualClockService>(
        parts.gate, options.virtual_clock, options.flush, parts.hub);
  }
  if (options.peer_store != nullptr) {
    peers_ = std::make_unique<PeerService>(
        parts.gate, PeerStream::Parts{
                        options.peer_store, options.peer_whole_store, parts.hub,
                        parts.streams, &executor_, options.peer_principal,
                        ToDuration(options.limits.max_connection_age())});
  }
}

void Services::AddTo(grpc::ServerBuilder* builder) {
  builder->RegisterService(&health_);
  builder->RegisterService(&time_cache_);
  builder->RegisterService(&namespaces_);
  builder->RegisterService(&groups_);
  builder->RegisterService(&server_);
  if (virtual_clock_ != nullptr) builder->RegisterService(virtual_clock_.get());
  if (peers_ != nullptr) builder->RegisterService(peers_.get());
  builder->RegisterCallbackGenericService(&unknown_);
}

}  // namespace timecache::server
