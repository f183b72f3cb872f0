// A whole server for the fuzzer: every method of every service, without
// sockets.

#ifndef TIMECACHED_TESTS_FUZZ_RPC_WORLD_H_
#define TIMECACHED_TESTS_FUZZ_RPC_WORLD_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "grpcpp/grpcpp.h"
#include "server/api/access.h"
#include "server/base/clock.h"
#include "server/engine/local_store.h"
#include "server/engine/parts/partitioned_store.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/rpc/server.h"

namespace timecache::fuzz {

// Makes calls of bytes that need not be messages, and ends the process where an
// answer breaks a promise: a code that the protos do not name, an error without
// its reason, a response that is no message, a call that does not end.
//
// Not thread-safe. Some hundred microseconds a call.
class RpcWorld {
 public:
  static constexpr int kMaxNamespaces = 4;

  // `access`, which is not owned, are the rules that calls are held to; null:
  // none.
  explicit RpcWorld(server::Access* access = nullptr);

  // The namespace "default", of two buckets, and its group "g", and nothing
  // else. The clock goes on from where it is.
  void Reset();

  // Calls the method, modulo the number of methods, with these messages: with
  // the first of them, where it takes only one.
  // Returns how it ended.
  grpc::Status Call(size_t method, const std::vector<std::string>& messages);
  bool IsClientStreaming(size_t method) const;

  // Metadata of all further calls, until Reset: one value of each name.
  void SetMetadata(const std::string& name, const std::string& value) {
    metadata_[name] = value;
  }

  server::TimeCacheMap& map() { return *map_; }
  server::Registry& registry() { return registry_; }
  int64_t now_us() const { return clock_.NowUs(); }

  // Lets time pass, and what is due happen.
  void Pass(int64_t step_us);

  // What holds between any two calls.
  void Check();

 private:
  using Method = google::protobuf::MethodDescriptor;

  const Method& At(size_t method) const {
    return *methods_[method % methods_.size()];
  }
  grpc::Status CallUnary(const Method& method, grpc::ClientContext* context,
                         const std::string& message);
  grpc::Status CallServerStream(const Method& method,
                                grpc::ClientContext* context,
                                const std::string& message);
  grpc::Status CallBidi(const Method& method, grpc::ClientContext* context,
                        const std::vector<std::string>& messages);

  std::vector<const Method*> methods_;
  std::map<std::string, std::string> metadata_;
  server::ManualClock clock_;
  server::Reaper reaper_;
  server::Registry registry_;
  // The namespace "default", as Reset made it.
  std::shared_ptr<server::TimeCacheMap> map_;
  server::LocalStore maps_{&registry_, &clock_};
  server::PartitionedStore store_{&maps_, &registry_};
  server::Server server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace timecache::fuzz

#endif  // TIMECACHED_TESTS_FUZZ_RPC_WORLD_H_
