// The stream from this node to another one.

#ifndef TIMECACHED_SERVER_PEER_PEER_LINK_H_
#define TIMECACHED_SERVER_PEER_PEER_LINK_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/channel.h"
#include "server/peer/frame_queue.h"
#include "timecache/peer/v1/peer.grpc.pb.h"

namespace timecache::server {

// What all links of a process have counted. Thread-safe.
struct PeerCounts {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> repeated_calls{0};
  std::atomic<uint64_t> failed_calls{0};
  std::atomic<uint64_t> messages_sent{0};
  std::atomic<uint64_t> messages_received{0};
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<int64_t> open{0};
};

// A reader at the other node, as the link sees it. Its functions are called
// without a lock, one after the other.
class PeerReader {
 public:
  virtual ~PeerReader() = default;
  virtual void OnChunk(absl::string_view body) = 0;
  // The stream is broken, and nothing comes any more.
  virtual void OnBroken() = 0;
};

// Calls at one other node, whoever makes them, over one stream, which is opened by
// the first call, and again when it has broken. Thread-safe.
class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  // How long a call waits for the stream before nothing of it was sent.
  static constexpr std::chrono::milliseconds kConnectPatience{500};
  // From a stream that has broken to the next, twice as long each time.
  static constexpr std::chrono::milliseconds kMinBackOff{50};
  static constexpr std::chrono::milliseconds kMaxBackOff{1'000};
  // Times that a call which only reads is sent.
  static constexpr int kMaxSends = 3;

  struct Options {
    // "host:port", for errors.
    std::string address;
    // A channel with connections of its own. Called again once it was refused: by then
    // there may be another certificate.
    std::function<std::shared_ptr<grpc::Channel>()> make_channel;
    // How long the other node may take to answer.
    Duration call_timeout = std::chrono::minutes(1);
    // The value of the metadata `authorization`; null, or empty: none. Called for each
    // stream.
    std::function<std::string()> authorization;
    // How long what is to be sent waits for the other node to read what was.
    Duration gather = kPeerGather;
    // Not owned; must outlive the link.
    PeerCounts* counts = nullptr;
  };
  explicit PeerLink(Options options);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  // While one lives, what its thread sends waits until it ends, and goes to each node in
  // one message: unless that is full, or another thread sends something. Only the first
  // of a thread counts.
  class Together {
   public:
    Together();
    ~Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

   private:
    friend class PeerLink;
    // Those that something waits for.
    std::vector<std::shared_ptr<PeerLink>> links_;
  };

  using Answered = absl::AnyInvocable<void(absl::StatusOr<std::string> body)>;
  struct Call {
    std::string body;
    // Whether it changes nothing, and may be sent again.
    bool reads = false;
    // The readers that it opens: the numbers after the call's are theirs.
    std::vector<std::shared_ptr<PeerReader>> readers = {};
    // Null, or called at most once before `answered`: see BatchProgress.
    std::function<void()> on_applied = nullptr;
    Answered answered;
  };
  // Makes the call; returns its number. It ends with the other node's answer, or:
  // UNAVAILABLE (NOT_OWNER), it was not sent; UNAVAILABLE (OWNERSHIP_LOST), it was,
  // and the answer did not come: what it writes may or may not be applied;
  // RESOURCE_EXHAUSTED (MAX_MEMORY), too much waits already.
  uint64_t Start(Call call) ABSL_LOCKS_EXCLUDED(mu_);

  // Sends a message of a reader; nothing once its stream is broken.
  void Send(uint64_t reader, peer::v1::FrameKind kind, std::string body = "")
      ABSL_LOCKS_EXCLUDED(mu_);
  // The reader is gone: closes it at the other node.
  void Close(uint64_t reader) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends calls that are late, sends what waits for a node that does not read, so that it
  // is late there, and connects again when it is time. To be called some times a second.
  void Look() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all calls and readers, and waits for the end of the stream. Calls that are
  // made later fail.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Stream;

  struct Pending {
    // Null once it is sent, of one that is not sent again.
    std::shared_ptr<const std::string> body;
    bool reads = false;
    bool sent = false;
    bool applied = false;
    int sends = 0;
    Time deadline;
    std::vector<std::shared_ptr<PeerReader>> readers;
    std::function<void()> on_applied;
    // Null: it has ended, and what it opens is closed once it is answered.
    Answered answered;
  };
  using Calls = absl::btree_map<uint64_t, Pending>;
  // What is done without the lock, in order.
  using Actions = std::vector<absl::AnyInvocable<void()>>;

  // Unless the other node takes no more.
  void Push(PeerFrame frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Connect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether what waits is to wait for more, so that messages are few.
  bool Gathers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GoAway() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteSent(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUnsent(Pending* pending, Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the next one.
  Calls::iterator End(Calls::iterator call, absl::Status status,
                      Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Receive(peer::v1::Frame* frame, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReceiveAnswer(uint64_t id, std::string body, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of calls that were sent, and of readers.
  void EndSent(Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Run(Actions actions);

  // By the stream, of the one that is open.
  void OnConnected() ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten() ABSL_LOCKS_EXCLUDED(mu_);
  // False: it is to be ended.
  bool OnMessage(peer::v1::ExchangeResponse* message) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing is written from here on.
  void OnEnding() ABSL_LOCKS_EXCLUDED(mu_);
  void OnBroken(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status NotSent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NotAnswered(absl::string_view why) const;

  const Options options_;
  mutable absl::Mutex mu_;
  // Null: the next stream has a channel of its own.
  std::unique_ptr<peer::v1::PeerService::Stub> stub_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // Null: there is none.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mu_);
  bool connected_ ABSL_GUARDED_BY(mu_) = false;
  // Whether this stream has been.
  bool reached_ ABSL_GUARDED_BY(mu_) = false;
  // Nothing comes from it any more.
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  // The other node takes no more on this stream, but the rest of a begun frame.
  bool leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  Time last_write_ ABSL_GUARDED_BY(mu_);
  Time next_connect_ ABSL_GUARDED_BY(mu_);
  Duration back_off_ ABSL_GUARDED_BY(mu_) = kMinBackOff;
  // Why the last stream ended.
  std::string why_broken_ ABSL_GUARDED_BY(mu_);
  // Why the other node was not reached, as it was logged; empty: it was.
  std::string logged_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  FrameQueue queue_ ABSL_GUARDED_BY(mu_);
  // Messages of this stream, and how many of them the other node has read.
  uint64_t written_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t read_ ABSL_GUARDED_BY(mu_) = 0;
  FrameJoiner joiner_ ABSL_GUARDED_BY(mu_);
  // In their order.
  Calls calls_ ABSL_GUARDED_BY(mu_);
  // Bytes of calls that were not sent.
  size_t unsent_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Of calls that were answered.
  absl::flat_hash_map<uint64_t, std::shared_ptr<PeerReader>> readers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PEER_LINK_H_
