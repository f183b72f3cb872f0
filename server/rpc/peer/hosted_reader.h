// A reader of this node that another node reads.

#ifndef TIMECACHED_SERVER_RPC_PEER_HOSTED_READER_H_
#define TIMECACHED_SERVER_RPC_PEER_HOSTED_READER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/lock_order.h"
#include "server/engine/store/in_flight_limit.h"
#include "server/engine/store/readers.h"
#include "server/peer/event_fields.h"
#include "server/peer/peer_call.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/peer/v1/peer.pb.h"

namespace timecache::server {

class PeerStream;
class HostedReader;

// What the readers of one call are woken by. Thread-safe.
class HostedWake {
 public:
  explicit HostedWake(WatchHub* hub) : hub_(hub) {}

  // From any thread, and maybe under a lock of the engine.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  void Add(std::shared_ptr<HostedReader> reader) ABSL_LOCKS_EXCLUDED(mu_);
  // From here on it is not woken, and the hub may end.
  void Remove(const HostedReader* reader) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  WatchHub* const hub_;
  absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kWake)
      ABSL_ACQUIRED_BEFORE(lock_order::kHub);
  std::vector<std::shared_ptr<HostedReader>> readers_ ABSL_GUARDED_BY(mu_);
};

// The member of a HostedReader that is one in several partitions: see PeerGrant.
// Thread-safe.
struct HostedPart {
  // Of a stream: what it may hold is what was granted.
  std::shared_ptr<InFlightLimit> in_flight;
  // Whether its group has woken it since the other node was told.
  std::atomic<bool> woken{false};
};

// Reads on the hub's thread, a chunk at a time and one for each grant of the other
// node, and sends what it has read. Where the reader stands it sends without a grant:
// when it was asked to refresh it, or when that is news. Ends, and says so, when its
// namespace is gone, when this node does not own any more, or when its server drains.
// Thread-safe.
class HostedReader final : public Watcher,
                           public std::enable_shared_from_this<HostedReader> {
 public:
  struct Of {
    uint64_t id = 0;
    std::string name = {};
    // At the start.
    std::vector<PeerGrant> grants = {};
    // A grant is used by all that is there of it at once.
    bool fetches = false;
    // It takes nothing after the first chunk, also before the other node has said
    // that it has enough.
    bool once = false;
    // Null: it is no part. Begins without grants.
    std::shared_ptr<HostedPart> part = nullptr;
  };
  // `hub` must outlive its use: until Close.
  HostedReader(Of of, std::unique_ptr<EventReader> reader,
               std::weak_ptr<PeerStream> stream,
               std::shared_ptr<HostedWake> wake, WatchHub* hub);

  uint64_t id() const { return id_; }

  // What the answer to its call has of it.
  PeerChunk ReadFirst() ABSL_LOCKS_EXCLUDED(mu_);
  // The answer is sent: from here on it sends what comes.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);

  // By the other node.
  void OnFrame(peer::v1::FrameKind kind, absl::string_view body)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The other node, or its reader, is gone: it reads no more.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  bool OnWake(Wake why) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Read {
    PeerChunk chunk;
    bool worth_sending = false;
    bool more = false;
  };
  Read ReadOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of a part: what the other node is told without a grant, and how many events it
  // holds.
  PeerChunk Notice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int Held() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WhyEnds(bool draining) const;
  void Send(const PeerChunk& chunk);

  const uint64_t id_;
  const std::string name_;
  const bool fetches_;
  const bool once_;
  const std::shared_ptr<HostedPart> part_;
  const std::weak_ptr<PeerStream> stream_;
  const std::shared_ptr<HostedWake> wake_;
  WatchHub* const hub_;

  absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kStream)
      ABSL_ACQUIRED_BEFORE(lock_order::kMap);
  // Null once it has ended.
  std::unique_ptr<EventReader> reader_ ABSL_GUARDED_BY(mu_);
  bool begun_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // It reads for each; none once its member has left.
  std::deque<PeerGrant> grants_ ABSL_GUARDED_BY(mu_);
  bool left_ ABSL_GUARDED_BY(mu_) = false;
  // The age that a refresh permits; none: none was asked for.
  std::optional<int64_t> refresh_us_ ABSL_GUARDED_BY(mu_);
  // Its number.
  uint64_t refresh_ ABSL_GUARDED_BY(mu_) = 0;
  // Whether the other node has not been told where the reader stands since then.
  bool awaited_ ABSL_GUARDED_BY(mu_) = false;
  // As it was sent last.
  bool storing_ ABSL_GUARDED_BY(mu_) = false;
  int held_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_PEER_HOSTED_READER_H_
