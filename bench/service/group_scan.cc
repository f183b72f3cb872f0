#include "bench/service/group_scan.h"

#include <algorithm>
#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/slice.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::bench {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
// Its length; the token, of at most 32 bytes; an Ack, which is empty.
constexpr size_t kMaxSettlementBytes = 1 + (1 + 1 + 32) + (1 + 1);

constexpr uint32_t Tag(int field, uint32_t type) {
  return static_cast<uint32_t>(field) << 3 | type;
}

bool ScanEvent(CodedInputStream* in, GroupScan* scan) {
  Given given;
  for (uint32_t tag = in->ReadTag(); tag != 0; tag = in->ReadTag()) {
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::ExpiredEvent::kValueFieldNumber: {
        uint32_t bytes = 0;
        if (!in->ReadVarint32(&bytes) || !in->Skip(static_cast<int>(bytes))) {
          return false;
        }
        scan->value_bytes += bytes;
        break;
      }
      case v1::ExpiredEvent::kDeliveryTokenFieldNumber: {
        uint32_t bytes = 0;
        if (!in->ReadVarint32(&bytes) ||
            !in->ReadString(&given.token, static_cast<int>(bytes))) {
          return false;
        }
        break;
      }
      case v1::ExpiredEvent::kAttemptFieldNumber:
        if (!in->ReadVarint32(&given.attempt)) return false;
        break;
      default:
        if (!WireFormatLite::SkipField(in, tag)) return false;
    }
  }
  scan->events.push_back(std::move(given));
  return in->BytesUntilLimit() == 0;
}

}  // namespace

bool ScanGroupMessage(const grpc::ByteBuffer& message, GroupScan* scan) {
  // In one piece it is read several times faster.
  grpc::Slice whole;
  if (!message.DumpToSingleSlice(&whole).ok()) return false;
  CodedInputStream in(whole.begin(), static_cast<int>(whole.size()));
  for (uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::ConsumeExpiredResponse::kEventsFieldNumber: {
        uint32_t bytes = 0;
        if (!in.ReadVarint32(&bytes)) return false;
        const auto limit = in.PushLimit(static_cast<int>(bytes));
        if (!ScanEvent(&in, scan)) return false;
        in.PopLimit(limit);
        break;
      }
      case v1::ConsumeExpiredResponse::kLostFieldNumber:
        if (!in.ReadVarint64(&scan->lost)) return false;
        break;
      default:
        if (!WireFormatLite::SkipField(&in, tag)) return false;
    }
  }
  return in.ConsumedEntireMessage();
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
    *at++ = Tag(v1::SettleExpiredRequest::kSettlementsFieldNumber, kBytes);
    uint8_t* const length = at++;
    *at++ = Tag(v1::Settlement::kDeliveryTokenFieldNumber, kBytes);
    const std::string& token = events[i].token;
    *at++ = static_cast<uint8_t>(token.size());
    at = std::copy(token.begin(), token.end(), at);
    *at++ = Tag(v1::Settlement::kAckFieldNumber, kBytes);
    *at++ = 0;
    *length = static_cast<uint8_t>(at - length - 1);
  }
  const grpc::Slice slice(begin, static_cast<size_t>(at - begin));
  return grpc::ByteBuffer(&slice, 1);
}

bool AllSettled(const grpc::ByteBuffer& response, size_t count) {
  grpc::Slice whole;
  if (!response.DumpToSingleSlice(&whole).ok()) return false;
  // The result of one that was acknowledged is empty.
  if (whole.size() != 2 * count) return false;
  constexpr uint8_t kResult =
      Tag(v1::SettleExpiredResponse::kResultsFieldNumber, kBytes);
  for (const uint8_t* at = whole.begin(); at != whole.end(); at += 2) {
    if (at[0] != kResult || at[1] != 0) return false;
  }
  return true;
}

}  // namespace timecache::bench
