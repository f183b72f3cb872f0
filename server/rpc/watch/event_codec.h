// The wire form of the watches' messages beside their events, written by hand:
// the same fields as the generated classes', in one pass and without objects.
// The methods' responses share these fields, as far as they have them.

#ifndef TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_
#define TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// The other fields of a message, to be put before or after its events. `lost`
// is left out if it is 0, the token if it is empty. `delivered_us` is a group's
// delivered_watermark.
std::string EncodeRest(absl::string_view map, int64_t watermark_us,
                       uint64_t lost, absl::string_view resume_token,
                       std::optional<int64_t> delivered_us = {});
// The same of a FetchExpiredResponse.
std::string EncodeFetchRest(int64_t watermark_us, uint64_t lost,
                            int64_t delivered_us);

// The events of `batch` whose keys begin with `key_prefix`, with `keys_only`
// without their values. The batch itself if it has no others.
std::shared_ptr<const EventBatch> Filter(
    const std::shared_ptr<const EventBatch>& batch,
    absl::string_view key_prefix, bool keys_only);

// How an event's value is written.
enum class ValueForm {
  kWhole,
  kLeftOut,  // It was not requested.
  kOmitted,  // It is too large: only its size is written.
};

// The field `events` of a stream's message, and of a FetchExpiredResponse.
inline constexpr int kStreamEvents = 2;
inline constexpr int kFetchedEvents = 1;

// Appends a group's event, as that field: the event's bytes of its batch, with
// its number, attempt and returns, which are left out if they are 0, and, of an
// attempt, its token.
void AppendDelivery(const Delivery& delivery, ValueForm form, std::string* to,
                    int field = kStreamEvents);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_
