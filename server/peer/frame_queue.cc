#include "server/peer/frame_queue.h"

#include <algorithm>

namespace timecache::server {

void FrameQueue::Take(PeerFrames* message) {
  size_t room = kMaxPeerMessageBytes;
  while (!frames_.empty() && room > 0) {
    const PeerFrame& frame = frames_.front();
    peer::v1::Frame* const to = message->Add();
    to->set_id(frame.id);
    to->set_kind(frame.kind);
    if (frame.body != nullptr) {
      const size_t part = std::min(frame.body->size() - taken_, room);
      to->set_body(frame.body->data() + taken_, part);
      taken_ += part;
      room -= part;
      if (taken_ < frame.body->size()) {
        to->set_continues(true);
        return;
      }
    }
    taken_ = 0;
    room -= std::min(room, kFrameOverheadBytes);
    bytes_ -= SizeOf(frame);
    frames_.pop_front();
  }
}

void FrameQueue::DropUnbegun() {
  const size_t begun = taken_ > 0 ? 1 : 0;
  while (frames_.size() > begun) {
    bytes_ -= SizeOf(frames_.back());
    frames_.pop_back();
  }
}

FrameJoiner::Joined FrameJoiner::Join(peer::v1::Frame* frame) {
  if (begun_.size() + frame->body().size() > kMaxPeerFrameBytes) {
    return Joined::kTooLarge;
  }
  if (frame->continues()) {
    begun_.append(frame->body());
    return Joined::kPart;
  }
  if (!begun_.empty()) {
    begun_.append(frame->body());
    frame->set_body(std::exchange(begun_, std::string()));
  }
  return Joined::kWhole;
}

}  // namespace timecache::server
