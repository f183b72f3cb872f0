// The wire form of the watches' messages, written by hand: the same fields as
// the generated classes', in one pass and without objects.

#ifndef TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_
#define TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// Events as the field `events` of the watches' responses, tag and length
// included (parts stand where a value would): a protobuf message is a sequence
// of fields in any order, so the bytes of whole batches, one after the other,
// are a message. Logs whose batches have this format are read by watchers
// without another encoding.
const EventFormat* WireFormat();

// The other fields of a message, to be put before or after its events. `lost`
// is left out if it is 0, the token if it is empty.
std::string EncodeRest(absl::string_view map, int64_t watermark_us,
                       uint64_t lost, absl::string_view resume_token);

// The events of `batch` whose keys begin with `key_prefix`, with `keys_only`
// without their values, in the wire format. The batch itself if that is what it
// holds.
std::shared_ptr<const EventBatch> Filter(
    const std::shared_ptr<const EventBatch>& batch, absl::string_view map,
    absl::string_view key_prefix, bool keys_only);

// How an event's value is written.
enum class ValueForm {
  kWhole,
  kLeftOut,  // It was not requested.
  kOmitted,  // It is too large: only its size is written.
};

// Appends a group's event, as the field `events`: the event's bytes of its
// batch, which must be in the wire format, with its number, attempt and returns,
// which are left out if they are 0.
void AppendDelivery(const Delivery& delivery, ValueForm form, std::string* to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_EVENT_CODEC_H_
