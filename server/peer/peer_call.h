// The calls that one node makes at another, and their bounds.

#ifndef TIMECACHED_SERVER_PEER_PEER_CALL_H_
#define TIMECACHED_SERVER_PEER_PEER_CALL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "server/engine/store/event_batch.h"
#include "server/peer/field_coder.h"

namespace timecache::server {

// The first field of a call's body: a method of Store, whose arguments follow in
// their order. An answer's first field is the status, and what the call completes
// with follows. The numbers stay as they are.
enum class PeerCall : uint8_t {
  kNone = 0,
  kExecute = 1,
  kExecuteAtomic = 2,
  kGetSize = 3,
  kScan = 4,
  kCreateNamespace = 5,
  kGetNamespace = 6,
  kListNamespaces = 7,
  kUpdateNamespace = 8,
  kDeleteNamespace = 9,
  kRotateNamespace = 10,
  kGetDeaths = 11,
  kGetHotKeys = 12,
  kCreateGroup = 13,
  kGetGroup = 14,
  kListGroups = 15,
  kUpdateGroup = 16,
  kDeleteGroup = 17,
  kListMembers = 18,
  kSeekGroup = 19,
  kListUnsettled = 20,
  kSettle = 21,
  kOpenLogs = 22,
  kOpenChanges = 23,
  kJoinGroups = 24,
  kOpenExpiring = 25,
};

// Added to the number of a call that is about a namespace with all its partitions, and is
// for the node that serves its home: see home_router.h. Without it a call is about maps.
inline constexpr uint8_t kWholeNamespace = 0x80;

// One message on the wire ends behind the frame that makes it so large, which is
// parted there.
inline constexpr size_t kMaxPeerMessageBytes = size_t{1} << 20;
// A message costs both nodes together as much as some hundred operations. So what comes
// until the other node has read the one before, or so long after that was written, waits
// and goes together; but not once there are so many bytes.
inline constexpr std::chrono::microseconds kPeerGather{500};
inline constexpr size_t kFullPeerMessageBytes = size_t{64} << 10;
// The largest frame. Requests of clients are 16 MiB at most, and the operations of a
// batch of short ones take several times as much here; answers have 3 MiB of values,
// or a single larger one.
inline constexpr size_t kMaxPeerFrameBytes = size_t{256} << 20;
// What waits to be sent to a peer, and the calls that wait for its answer: beyond
// either, calls fail.
inline constexpr size_t kMaxPeerQueuedBytes = size_t{64} << 20;
inline constexpr size_t kMaxPeerCalls = size_t{1} << 16;
// Calls of a message that comes so much later than it was sent, beside the fastest one of
// its stream, are refused (NOT_OWNER): it was held up, or their node was, and whoever
// asked has given up, or may have.
inline constexpr int64_t kMaxPeerDelayUs = 1'000'000;
// While as much waits to be sent, the answering node reads no further calls.
inline constexpr size_t kMaxPeerAnswerBytes = size_t{16} << 20;

// What a reader may send ahead of its reader's wishes: so many chunks, each of at
// most these bytes or a single larger batch. A group's member holds what it was
// sent, so it gets a chunk only when one is asked for.
inline constexpr int kMaxPeerChunks = 2;
inline constexpr int64_t kMaxPeerChunkBytes =
    static_cast<int64_t>(kMaxEventBatchBytes);

// The body of a FRAME_KIND_GRANT.
//
// A member that is one in several partitions (Membership::in_several) may hold only so
// many events in all of them, which are at several nodes: the reading node keeps that
// limit. So nothing is granted before the other node has said that there may be events.
// A grant then is of as many as there is room for, which counts as used until the grant's
// answer: it always has one, a chunk that says how many events the member holds there. A
// grant of none says that it takes nothing now.
struct PeerGrant {
  int events = kMaxEventBatchEvents;
  int64_t bytes = kMaxPeerChunkBytes;
};

template <typename Coder, Is<PeerGrant> T>
void CodeFields(Coder& code, T& grant) {
  code(grant.events, grant.bytes);
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_PEER_CALL_H_
