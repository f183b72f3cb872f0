// The fields of events: what readers read, and what groups have not settled.

#ifndef TIMECACHED_SERVER_PEER_EVENT_FIELDS_H_
#define TIMECACHED_SERVER_PEER_EVENT_FIELDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/group_types.h"
#include "server/peer/field_coder.h"
#include "server/peer/store_fields.h"

namespace timecache::server {

// A batch as it travels: with its events as they are encoded. Owns nothing of
// them where it is written; where it is read, the view is into what was read.
struct EncodedBatch {
  Death death;
  absl::string_view events;
};

template <typename Coder, Is<Death> T>
void CodeFields(Coder& code, T& death) {
  code(death.death_us, death.published_us, death.cause);
}

template <typename Coder, Is<EncodedBatch> T>
void CodeFields(Coder& code, T& batch) {
  code(batch.death, batch.events);
}

template <typename Coder, Is<LostEvents> T>
void CodeFields(Coder& code, T& lost) {
  code(lost.events, lost.prefix);
}

// Without its event: batch and index.
template <typename Coder, Is<Delivery> T>
void CodeFields(Coder& code, T& delivery) {
  code(delivery.event_id, delivery.attempt, delivery.returns, delivery.group_id,
       delivery.reason, delivery.reason_text, delivery.partition);
}

// Without its batches and deliveries.
template <typename Coder, Is<EventChunk> T>
void CodeFields(Coder& code, T& chunk) {
  code(chunk.shared, chunk.watermark_us, chunk.delivered_us, chunk.arrived_us);
  code.Flags(chunk.all_delivered, chunk.undoable, chunk.storing, chunk.more,
             chunk.closed, chunk.at_limit);
  code(chunk.lost, chunk.lost_events, chunk.point, chunk.points);
}

// Without its delivery.
template <typename Coder, Is<UnsettledInfo> T>
void CodeFields(Coder& code, T& info) {
  code(info.state, info.member_id, info.since_us, info.due_us);
}

// What a reader has read, and why it says `closed` if it does.
struct PeerChunk {
  EventChunk chunk;
  absl::Status why_closed;
  // The last FRAME_KIND_REFRESH that it has; 0: none.
  uint64_t refresh = 0;
  // Of a member in several partitions; see PeerGrant. Whether this answers a grant.
  bool answers = false;
  // There is no chunk, but there may be events, or the member holds fewer.
  bool notice = false;
  bool may_have = false;
  int held = 0;

  // Whether it has more to say than where the reader stands.
  bool has_content() const {
    return !chunk.batches.empty() || !chunk.deliveries.empty() ||
           chunk.lost > 0 || chunk.closed;
  }
};

void WriteChunk(const PeerChunk& chunk, FieldWriter* to);
// Of the namespace whose events they are. False: not what WriteChunk writes.
bool ReadChunk(absl::string_view name, FieldReader* from, PeerChunk* chunk);

void WriteUnsettled(const UnsettledPage& page, FieldWriter* to);
bool ReadUnsettled(absl::string_view name, FieldReader* from,
                   UnsettledPage* page);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_EVENT_FIELDS_H_
