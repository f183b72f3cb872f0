// A reader whose events are at another node.

#ifndef TIMECACHED_SERVER_PEER_REMOTE_READER_H_
#define TIMECACHED_SERVER_PEER_REMOTE_READER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/lock_order.h"
#include "server/engine/store/in_flight_limit.h"
#include "server/engine/store/readers.h"
#include "server/peer/event_fields.h"
#include "server/peer/peer_call.h"
#include "server/peer/peer_link.h"

namespace timecache::server {

enum class PeerReaderKind : uint8_t {
  kLog,
  kMember,
  kFetch,
  // Of one that is in several partitions: see PeerGrant.
  kPartOfMember,
  kPartOfFetch
};

// What a reader was sent, and not yet asked for. Bounded by what it has let the
// other node send: see peer_call.h. Thread-safe.
class ReceivedChunks final : public PeerReader {
 public:
  // Of the namespace. `wake` is EventReader's. `in_flight`: that of a kPartOfMember.
  ReceivedChunks(std::string name, PeerReaderKind kind,
                 std::function<void()> wake,
                 std::shared_ptr<InFlightLimit> in_flight = nullptr)
      : name_(std::move(name)),
        kind_(kind),
        wake_(std::move(wake)),
        in_flight_(std::move(in_flight)) {}

  // The first, with the answer to the call that opened it. False: it means
  // nothing.
  bool Begin(PeerChunk first) ABSL_LOCKS_EXCLUDED(mu_);

  // The number of a refresh that is asked for now.
  uint64_t NextRefresh() ABSL_LOCKS_EXCLUDED(mu_);

  // The next one, or what is known without; `*grant` is to be sent, if set. See
  // EventReader::Read.
  EventChunk Take(int max_events, int64_t max_bytes, bool at_least_one,
                  std::optional<PeerGrant>* grant) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status why_closed() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a delivery was taken.
  bool delivered() const ABSL_LOCKS_EXCLUDED(mu_);

  void OnChunk(absl::string_view body) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnBroken() override ABSL_LOCKS_EXCLUDED(mu_);

  const std::string& name() const { return name_; }
  PeerReaderKind kind() const { return kind_; }

 private:
  bool of_log() const { return kind_ == PeerReaderKind::kLog; }
  bool of_part() const { return kind_ >= PeerReaderKind::kPartOfMember; }

  void Add(PeerChunk chunk) ABSL_LOCKS_EXCLUDED(mu_);
  void Push(PeerChunk chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks for events, where there may be some.
  void Ask(int max_events, int64_t max_bytes, std::optional<PeerGrant>* grant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What is there without a chunk, of which some may be asked for.
  EventChunk TakePlace(int max_events, int64_t max_bytes,
                       std::optional<PeerGrant>* grant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many events the member does not hold any more, of those that it was lent.
  int Settle(const PeerChunk& chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const PeerReaderKind kind_;
  const std::function<void()> wake_;
  const std::shared_ptr<InFlightLimit> in_flight_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kStream)
      ABSL_ACQUIRED_BEFORE(lock_order::kWake);
  std::deque<PeerChunk> chunks_ ABSL_GUARDED_BY(mu_);
  // The last that was taken, without its events: where the reader stands.
  EventChunk place_ ABSL_GUARDED_BY(mu_);
  absl::Status why_closed_ ABSL_GUARDED_BY(mu_);
  // Chunks that the other node may still send.
  int granted_ ABSL_GUARDED_BY(mu_) = 0;
  // Whether the reader has found nothing more to read.
  bool idle_ ABSL_GUARDED_BY(mu_) = false;
  bool delivered_ ABSL_GUARDED_BY(mu_) = false;
  // The last refresh that was asked for.
  uint64_t refresh_ ABSL_GUARDED_BY(mu_) = 0;
  // Of a part. Whether the other node may have events; of the grant that it has not
  // answered; and what of `in_flight` is in use for it.
  bool may_have_ ABSL_GUARDED_BY(mu_) = false;
  int asked_ ABSL_GUARDED_BY(mu_) = 0;
  int lent_ ABSL_GUARDED_BY(mu_) = 0;
};

// Reads from them. Its watermark is what the other node last told: a refresh asks for
// a newer one, which then counts as something to read.
class RemoteReader final : public EventReader {
 public:
  RemoteReader(std::shared_ptr<PeerLink> link, uint64_t id,
               std::shared_ptr<ReceivedChunks> chunks)
      : link_(std::move(link)), id_(id), chunks_(std::move(chunks)) {}
  ~RemoteReader() override { link_->Close(id_); }
  RemoteReader(const RemoteReader&) = delete;
  RemoteReader& operator=(const RemoteReader&) = delete;

  using EventReader::Read;
  EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes,
                  bool at_least_one) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  bool refreshes_later() const override { return true; }
  absl::Status WhyClosed() const override { return chunks_->why_closed(); }
  void CountDelivery(int64_t lateness_us, uint64_t events) override;
  void StopReading() override;
  void Leave(int64_t now_us, StreamEnd end) override;

 private:
  const std::shared_ptr<PeerLink> link_;
  const uint64_t id_;
  const std::shared_ptr<ReceivedChunks> chunks_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_REMOTE_READER_H_
