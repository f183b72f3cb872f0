#include "bench/service/group_scan.h"

#include <algorithm>
#include <utility>

#include "grpcpp/support/slice.h"
#include "server/base/wire_reader.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::bench {
namespace {

using server::kLengthDelimited;
using server::kVarint;
using server::WireReader;

// Its length; the token, of at most 32 bytes; an Ack, which is empty.
constexpr size_t kMaxSettlementBytes = 1 + (1 + 1 + 32) + (1 + 1);

constexpr uint8_t Tag(int field) {
  return server::WireTag(field, kLengthDelimited);
}

// Calls visit(number, value, bytes) for each field: one of the latter is unset.
template <typename Visit>
bool ScanFields(absl::string_view message, const Visit& visit) {
  for (WireReader reader(message); !reader.done();) {
    uint64_t tag;
    uint64_t value = 0;
    absl::string_view bytes;
    if (!reader.Varint(&tag)) return false;
    const auto type = static_cast<int>(tag & 7);
    const bool read = type == kLengthDelimited
                          ? reader.Bytes(&bytes)
                          : type == kVarint && reader.Varint(&value);
    if (!read || !visit(static_cast<int>(tag >> 3), value, bytes)) return false;
  }
  return true;
}

bool ScanEvent(absl::string_view event, GroupScan* scan) {
  Given& given = scan->events.emplace_back();
  return ScanFields(
      event, [&](int field, uint64_t value, absl::string_view bytes) {
        if (field == v1::ExpiredEvent::kValueFieldNumber) {
          scan->value_bytes += bytes.size();
        } else if (field == v1::ExpiredEvent::kDeliveryTokenFieldNumber) {
          given.token.assign(bytes.data(), bytes.size());
        } else if (field == v1::ExpiredEvent::kAttemptFieldNumber) {
          given.attempt = static_cast<uint32_t>(value);
        }
        return true;
      });
}

// All of it: what is in one piece already is not copied.
bool WholeOf(const grpc::ByteBuffer& message, grpc::Slice* slice) {
  return message.TrySingleSlice(slice).ok() ||
         message.DumpToSingleSlice(slice).ok();
}

}  // namespace

bool ScanGroupMessage(const grpc::ByteBuffer& message, GroupScan* scan) {
  grpc::Slice whole;
  if (!WholeOf(message, &whole)) return false;
  return ScanFields(
      {reinterpret_cast<const char*>(whole.begin()), whole.size()},
      [&](int field, uint64_t value, absl::string_view bytes) {
        if (field == v1::ConsumeExpiredResponse::kEventsFieldNumber) {
          return ScanEvent(bytes, scan);
        }
        if (field == v1::ConsumeExpiredResponse::kLostFieldNumber) {
          scan->lost = value;
        }
        return true;
      });
}

grpc::ByteBuffer SettleRequest(const std::string& map, const std::string& group,
                               const Given* events, size_t count) {
  v1::SettleExpiredRequest head;
  head.set_namespace_(map);
  head.set_group(group);
  std::string bytes = head.SerializeAsString();
  const size_t head_bytes = bytes.size();
  bytes.resize(head_bytes + count * (1 + kMaxSettlementBytes));
  auto* const begin = reinterpret_cast<uint8_t*>(bytes.data());
  uint8_t* at = begin + head_bytes;
  for (size_t i = 0; i < count; ++i) {
    *at++ = Tag(v1::SettleExpiredRequest::kSettlementsFieldNumber);
    uint8_t* const length = at++;
    *at++ = Tag(v1::Settlement::kDeliveryTokenFieldNumber);
    const std::string& token = events[i].token;
    *at++ = static_cast<uint8_t>(token.size());
    at = std::copy(token.begin(), token.end(), at);
    *at++ = Tag(v1::Settlement::kAckFieldNumber);
    *at++ = 0;
    *length = static_cast<uint8_t>(at - length - 1);
  }
  const grpc::Slice slice(begin, static_cast<size_t>(at - begin));
  return grpc::ByteBuffer(&slice, 1);
}

bool AllSettled(const grpc::ByteBuffer& response, size_t count) {
  grpc::Slice whole;
  if (!WholeOf(response, &whole)) return false;
  // The result of one that was acknowledged is empty.
  if (whole.size() != 2 * count) return false;
  constexpr uint8_t kResult =
      Tag(v1::SettleExpiredResponse::kResultsFieldNumber);
  for (const uint8_t* at = whole.begin(); at != whole.end(); at += 2) {
    if (at[0] != kResult || at[1] != 0) return false;
  }
  return true;
}

}  // namespace timecache::bench
