#include "bench/watch/watch_scan.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "timecache/v1/watch.pb.h"

namespace timecache::bench {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Reads the moment that a field of type Timestamp holds.
bool ReadTimeUs(CodedInputStream* in, int64_t* time_us) {
  uint32_t bytes = 0;
  if (!in->ReadVarint32(&bytes)) return false;
  const auto limit = in->PushLimit(static_cast<int>(bytes));
  google::protobuf::Timestamp time;
  const bool ok = time.ParseFromCodedStream(in);
  in->PopLimit(limit);
  *time_us = time.seconds() * 1'000'000 + time.nanos() / 1'000;
  return ok;
}

bool ScanEvent(CodedInputStream* in, MessageScan* scan) {
  for (uint32_t tag = in->ReadTag(); tag != 0; tag = in->ReadTag()) {
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::ExpiredEvent::kValueFieldNumber: {
        uint32_t bytes = 0;
        if (!in->ReadVarint32(&bytes) || !in->Skip(static_cast<int>(bytes))) {
          return false;
        }
        scan->value_bytes = bytes;
        break;
      }
      case v1::ExpiredEvent::kDeathTimeFieldNumber:
        if (!ReadTimeUs(in, &scan->death_time_us)) return false;
        break;
      default:
        if (!WireFormatLite::SkipField(in, tag)) return false;
    }
  }
  return in->BytesUntilLimit() == 0;
}

}  // namespace

bool ScanMessage(grpc::ByteBuffer* message, MessageScan* scan) {
  grpc::ProtoBufferReader reader(message);
  if (!reader.status().ok()) return false;
  CodedInputStream in(&reader);
  for (uint32_t tag = in.ReadTag(); tag != 0; tag = in.ReadTag()) {
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case v1::WatchExpiredResponse::kEventsFieldNumber: {
        uint32_t bytes = 0;
        if (!in.ReadVarint32(&bytes)) return false;
        if (scan->events++ == 0) {
          const auto limit = in.PushLimit(static_cast<int>(bytes));
          if (!ScanEvent(&in, scan)) return false;
          in.PopLimit(limit);
        } else if (!in.Skip(static_cast<int>(bytes))) {
          return false;
        }
        scan->event_bytes += bytes;
        break;
      }
      case v1::WatchExpiredResponse::kLostFieldNumber:
        if (!in.ReadVarint64(&scan->lost)) return false;
        break;
      default:
        if (!WireFormatLite::SkipField(&in, tag)) return false;
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace timecache::bench
