// Which options an update changes (AIP-134).

#ifndef TIMECACHED_SERVER_API_UPDATE_MASK_H_
#define TIMECACHED_SERVER_API_UPDATE_MASK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/message.h"

namespace timecache::server {

// Sets in `changes`, an empty message of the options' type, the new values of a
// request: those of `options` that `mask` names, or of `defaults` for named
// options that are not set. Without a path, the options that are set. Paths are
// "options.<field>"; "options" and "*" are all of them, but for those in
// `fixed`, the names of fields that are fixed at creation, unless they are set.
// INVALID_ARGUMENT about update_mask for any other path.
absl::Status ApplyUpdateMask(const google::protobuf::FieldMask& mask,
                             const google::protobuf::Message& options,
                             const google::protobuf::Message& defaults,
                             absl::Span<const absl::string_view> fixed,
                             google::protobuf::Message* changes);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_UPDATE_MASK_H_
