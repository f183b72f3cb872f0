// Frames that wait to be sent, and frames that arrive in parts.

#ifndef TIMECACHED_SERVER_PEER_FRAME_QUEUE_H_
#define TIMECACHED_SERVER_PEER_FRAME_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/repeated_ptr_field.h"
#include "server/peer/peer_call.h"
#include "timecache/peer/v1/peer.pb.h"

namespace timecache::server {

using PeerFrames = google::protobuf::RepeatedPtrField<peer::v1::Frame>;

struct PeerFrame {
  uint64_t id = 0;
  peer::v1::FrameKind kind = peer::v1::FRAME_KIND_UNSPECIFIED;
  // Shared with those who may send it again.
  std::shared_ptr<const std::string> body;
};

// What waits for the write that is under way. Not thread-safe.
class FrameQueue {
 public:
  void Push(PeerFrame frame) {
    bytes_ += SizeOf(frame);
    frames_.push_back(std::move(frame));
  }
  // Moves what fits to the next message, at least something.
  void Take(PeerFrames* message);

  // All but a frame of which a part was taken.
  void DropUnbegun();

  bool empty() const { return frames_.empty(); }
  size_t bytes() const { return bytes_; }

 private:
  // What stands around a body, about.
  static constexpr size_t kFrameOverheadBytes = 16;
  static size_t SizeOf(const PeerFrame& frame) {
    return kFrameOverheadBytes +
           (frame.body == nullptr ? 0 : frame.body->size());
  }

  std::deque<PeerFrame> frames_;
  size_t bytes_ = 0;
  // Of the first frame's body, what was taken.
  size_t taken_ = 0;
};

// Puts parted frames together. Not thread-safe.
class FrameJoiner {
 public:
  enum class Joined { kWhole, kPart, kTooLarge };

  // kWhole: `frame` is one, with all of its body.
  Joined Join(peer::v1::Frame* frame);

 private:
  std::string begun_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PEER_FRAME_QUEUE_H_
