// A consumer group's share of a namespace as a watch reads it.

#ifndef TIMECACHED_SERVER_RPC_WATCH_GROUP_SOURCE_H_
#define TIMECACHED_SERVER_RPC_WATCH_GROUP_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/engine/store/readers.h"
#include "server/rpc/watch/watch_request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {

// A member of a group, which must settle the events that it reads, until the
// stream ends. The events of a message are copied, each with its number and
// attempt.
class GroupSource final : public WatchSource {
 public:
  // Of the namespace `name`.
  GroupSource(std::string name, bool keys_only,
              std::unique_ptr<GroupReader> reader);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  void OnDrain() override { draining_ = true; }
  // A client leaves because the server stops, too.
  void OnEnd(int64_t now_us, StreamEnd end) override {
    reader_->Leave(now_us, draining_ ? StreamEnd::kByServer : end);
  }

 private:
  const std::string name_;
  const bool keys_only_;
  const std::unique_ptr<GroupReader> reader_;
  bool draining_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_GROUP_SOURCE_H_
