#include "server/rpc/watch/delivery_token.h"

#include <cstdint>
#include <limits>

#include "server/base/error.h"
#include "server/base/wire_format.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {
namespace {

constexpr size_t kGroupIdBytes = 5;
static_assert(kMaxGroupId >> (8 * kGroupIdBytes) == 0);

bool TakeTokenInt(absl::string_view* from, int* value) {
  uint64_t number;
  if (!TakeVarint(from, &number) ||
      number > uint64_t{std::numeric_limits<int32_t>::max()}) {
    return false;
  }
  *value = static_cast<int>(number);
  return true;
}

// The first one is not written.
bool TakePartition(absl::string_view* from, uint8_t* partition) {
  if (from->empty()) return true;
  int number;
  if (!TakeTokenInt(from, &number) || number < 1 || number >= kMaxPartitions) {
    return false;
  }
  *partition = static_cast<uint8_t>(number);
  return true;
}

}  // namespace

std::string OperatorToken(const Delivery& delivery) {
  Delivery none = {.batch = nullptr, .event_id = delivery.event_id};
  none.group_id = delivery.group_id;
  none.partition = delivery.partition;
  char token[kMaxDeliveryTokenBytes];
  return std::string(token, WriteDeliveryToken(none, token));
}

char* WriteDeliveryToken(const Delivery& delivery, char* to) {
  for (size_t i = 0; i < kGroupIdBytes; ++i) {
    *to++ = static_cast<char>(delivery.group_id >> (8 * i));
  }
  to = PutVarint(delivery.event_id, to);
  to = PutVarint(static_cast<uint64_t>(delivery.attempt), to);
  to = PutVarint(static_cast<uint64_t>(delivery.returns), to);
  return delivery.partition == 0 ? to : PutVarint(delivery.partition, to);
}

absl::Status ReadDeliveryToken(absl::string_view token, Settlement* to) {
  absl::string_view left = token;
  if (left.size() > kGroupIdBytes) {
    for (size_t i = 0; i < kGroupIdBytes; ++i) {
      to->group_id |= uint64_t{static_cast<uint8_t>(left[i])} << (8 * i);
    }
    left.remove_prefix(kGroupIdBytes);
    if (TakeVarint(&left, &to->event_id) && TakeTokenInt(&left, &to->attempt) &&
        TakeTokenInt(&left, &to->returns) &&
        TakePartition(&left, &to->partition) && left.empty()) {
      to->by_operator = to->attempt == 0;
      return absl::OkStatus();
    }
  }
  return InvalidField("delivery_token",
                      token.empty()
                          ? "must be given: that of the event"
                          : "is damaged or not of this service: send the bytes "
                            "of ExpiredEvent.delivery_token unchanged");
}

}  // namespace timecache::server
