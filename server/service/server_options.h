// What a server is told to be, and what it works on.

#ifndef TIMECACHED_SERVER_SERVICE_SERVER_OPTIONS_H_
#define TIMECACHED_SERVER_SERVICE_SERVER_OPTIONS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/clock.h"
#include "server/service/admin/backup_source.h"
#include "server/service/admin/change.h"
#include "server/service/call/access.h"
#include "server/service/call/call_gate.h"
#include "timecache/config/v1/config.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

struct ServerOptions {
  // host:port or unix:/path, at least one.
  std::vector<std::string> addresses;
  // How each of them speaks; null, and where there are fewer: plain text.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  // Where health alone is served, in plain text. Empty: nowhere.
  std::string health_address;
  // With every field set but max_response_bytes, which is 0 then: see
  // DefaultConfig in server/config/config.h.
  config::v1::ServerLimits limits;
  // See ApplyLimits.
  int64_t grpc_memory_bytes = 0;
  // Set: VirtualClockService is served on it. Not owned; the same that
  // everything else uses.
  ManualClock* virtual_clock = nullptr;
  // Of a virtual clock: waits until all that is due at its time has been
  // published.
  std::function<void()> flush;
  // The rules that calls are held to; null: everybody may do everything. Not
  // owned, as the observers, who are told of calls.
  Access* access = nullptr;
  std::vector<CallObserver*> call_observers;
  // Serve gRPC's server reflection.
  bool reflection = true;
  // Serve gRPC's channelz, to everybody.
  bool channelz = false;
  // Told of changes of namespaces.
  AdminObserver observer;
  // What GetServer says.
  std::string version;
  // Says what the journal does; null: there is none.
  std::function<void(v1::JournalStatus* journal)> describe_journal;
  // Of the journal; null without one.
  BackupSource backup_source;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_SERVER_OPTIONS_H_
