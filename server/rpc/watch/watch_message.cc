#include "server/rpc/watch/watch_message.h"

#include <cstring>
#include <utility>

#include "server/rpc/watch/event_codec.h"
#include "server/rpc/watch/resume_token.h"

namespace timecache::server {
namespace {

using BatchRef = std::shared_ptr<const EventBatch>;

// The batch's own bytes; the slice keeps the batch.
grpc::Slice Share(const BatchRef& batch) {
  const absl::string_view bytes = batch->encoded();
  // gRPC's API takes a mutable pointer, and does not write.
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* ref) { delete static_cast<BatchRef*>(ref); },
      new BatchRef(batch));
}

}  // namespace

void WatchMessage::Add(const PassedEvents& passed) {
  const BatchRef& batch = passed.batch;
  const absl::string_view bytes = batch->encoded();
  if (!Fits(bytes.size())) {
    for (int i = 0; i < batch->size(); ++i) {
      AppendDelivery({.batch = batch, .index = i}, ValueForm::kOmitted, &own_);
    }
    return;
  }
  if (bytes.size() <= kMaxCopiedBytes) {
    own_.append(bytes.data(), bytes.size());
    return;
  }
  Flush();
  slices_.push_back(passed.bytes == nullptr
                        ? Share(batch)
                        : SharedBytes::Share(passed.bytes, account_));
}

void WatchMessage::AddDelivery(const Delivery& delivery, bool keys_only,
                               int field) {
  const auto form = keys_only ? ValueForm::kLeftOut
                    : !Fits(delivery.batch->encoded(delivery.index).size())
                        ? ValueForm::kOmitted
                        : ValueForm::kWhole;
  AppendDelivery(delivery, form, &own_, field);
}

bool WatchMessage::Fits(size_t event_bytes) const {
  const size_t long_token =
      resume_token.size() > kMaxPlainTokenBytes ? resume_token.size() : 0;
  return event_bytes + long_token <= max_event_bytes_;
}

void WatchMessage::Flush(bool patient) {
  if (own_.empty()) return;
  if (account_ == nullptr) {
    slices_.emplace_back(own_.data(), own_.size());
  } else {
    grpc::Slice slice = account_->NewSlice(own_.size(), patient);
    std::memcpy(const_cast<uint8_t*>(slice.begin()), own_.data(), own_.size());
    slices_.push_back(std::move(slice));
  }
  own_.clear();
}

grpc::ByteBuffer WatchMessage::Take(absl::string_view map) {
  own_ += EncodeRest(map, watermark_us, lost, resume_token, delivered_us);
  Flush();
  grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  return message;
}

grpc::ByteBuffer WatchMessage::TakeFetched() {
  own_ += EncodeFetchRest(watermark_us, lost, delivered_us.value_or(0));
  Flush(/*patient=*/false);
  grpc::ByteBuffer message(slices_.data(), slices_.size());
  slices_.clear();
  return message;
}

}  // namespace timecache::server
