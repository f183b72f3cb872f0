// The stream on which another node has this one answer its calls.

#ifndef TIMECACHED_SERVER_RPC_PEER_PEER_STREAM_H_
#define TIMECACHED_SERVER_RPC_PEER_PEER_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/response/open_streams.h"
#include "server/engine/store/store.h"
#include "server/peer/frame_queue.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/peer/hosted_reader.h"
#include "server/rpc/watch/watch_hub.h"

namespace timecache::server {

// Makes the calls that it reads in their order, and writes what the calls of a message
// have answered at once, or what was answered while the write before was under way, as
// one message. It holds the readers that its
// calls have opened; when it ends, they end. While the other node does not read its
// answers it reads no calls. Lives until OnDone.
//
// Once its connection is old (OldAt), or when the server stops, it asks the other node
// to send no more, and ends when what was sent is answered: gRPC would cut it in the
// middle of calls.
class PeerStream final
    : public StreamReactor<PeerStream, grpc::ServerBidiReactor<
                                           grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Drainable {
 public:
  // What calls work with. Not owned.
  struct Parts {
    // This node's own, and that of calls about whole namespaces, or null: see
    // kWholeNamespace.
    Store* store;
    Store* whole_store;
    WatchHub* hub;
    OpenStreams* streams;
    FairExecutor* executor;
    // Who may call, where there are access rules.
    std::string principal;
    // Of connections; 0: they do not get old.
    absl::Duration max_connection_age;
  };

  // The gate and what `parts` names must outlive the stream, `parts` too.
  static PeerStream* Start(const CallGate& gate,
                           grpc::CallbackServerContext* context,
                           const Parts* parts);

  const Parts& parts() const { return parts_; }
  // UNAVAILABLE (NOT_OWNER) while this node serves nothing.
  absl::Status CheckService() const { return gate_.CheckService(); }
  // The same of the call that is being read, also if it was on its way too long.
  absl::Status CheckCall() const;

  // From calls and readers; nothing once it ends.
  void Send(PeerFrame frame) ABSL_LOCKS_EXCLUDED(mu_);
  // A call has sent its answer, and needs nothing more of what this works with.
  void EndCall() ABSL_LOCKS_EXCLUDED(mu_);
  // Both at once.
  void Answer(PeerFrame frame) ABSL_LOCKS_EXCLUDED(mu_);
  // False: the stream has ended, and they are closed.
  bool AddReaders(std::vector<std::shared_ptr<HostedReader>> readers)
      ABSL_LOCKS_EXCLUDED(mu_);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  bool OnDrain() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnAccessChanged() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  PeerStream(const CallGate& gate, grpc::CallbackServerContext* context,
             const Parts* parts);

  void Leave() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Authorize();
  void LeaveOnceOld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AskToLeave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteDelay(int64_t sent_us);
  void Receive(peer::v1::Frame* frame) ABSL_LOCKS_EXCLUDED(mu_);
  void Push(PeerFrame frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ToReader(const peer::v1::Frame& frame) ABSL_LOCKS_EXCLUDED(mu_);
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const CallGate& gate_;
  const Parts& parts_;
  Call call_;
  // Of the read that is under way, and the handling of what it read.
  grpc::ByteBuffer request_;
  FrameJoiner joiner_;
  // By how much this node's clock was ahead of the other one's when the fastest message
  // came, at most.
  int64_t least_delay_us_ = INT64_MAX;
  // The message that was read last was held up.
  bool late_ = false;

  FrameQueue queue_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mu_);
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // The calls of a message are being made: what they answer at once goes together.
  bool making_ ABSL_GUARDED_BY(mu_) = false;
  // Messages, and how many of them the other node was told of.
  uint64_t read_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t told_ ABSL_GUARDED_BY(mu_) = 0;
  // Calls that are not answered.
  size_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  // The other node was asked to send no more.
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Alarm old_ ABSL_GUARDED_BY(mu_);
  // How it ends, once these are, and what waits is written unless it is gone.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_map<uint64_t, std::shared_ptr<HostedReader>> readers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_PEER_PEER_STREAM_H_
