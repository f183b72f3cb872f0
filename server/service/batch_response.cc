#include "server/service/batch_response.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/check.h"
#include "server/service/convert.h"
#include "server/service/status.h"

namespace timecache {
namespace {

using google::protobuf::io::CodedOutputStream;

// Writes a message from its end to its beginning: so the length of what it
// holds is known where it must be written, and nothing is measured before.
// Fields are written in reverse, too.
class BackwardWriter {
 public:
  explicit BackwardWriter(uint8_t* end) : at_(end) {}

  uint8_t* at() const { return at_; }

  // Of a field with the default value nothing is written.
  void Number(int field, uint64_t value) {
    if (value == 0) return;
    Varint(value);
    Tag(field, kVarint);
  }

  void Bytes(int field, absl::string_view value) {
    if (value.empty()) return;
    uint8_t* const end = at_;
    Raw(value);
    Head(field, end);
  }

  void Raw(absl::string_view bytes) {
    at_ -= bytes.size();
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
  }

  // Closes a message that was written from `end` to here.
  void Head(int field, const uint8_t* end) {
    Varint(static_cast<uint64_t>(end - at_));
    Tag(field, kLengthDelimited);
  }

 private:
  static constexpr int kVarint = 0;
  static constexpr int kLengthDelimited = 2;

  void Varint(uint64_t value) {
    at_ -= CodedOutputStream::VarintSize64(value);
    CodedOutputStream::WriteVarint64ToArray(value, at_);
  }
  // All fields here are below 16.
  void Tag(int field, int wire_type) {
    *--at_ = static_cast<uint8_t>(field << 3 | wire_type);
  }

  uint8_t* at_;
};

// The most that heads, version and flag of an answer take.
constexpr size_t kMaxAnswerBytes = 32;
// The same of an entry, with its times and without its value.
constexpr size_t kMaxEntryBytes = 80;

void WriteTime(int field, int64_t time_us, BackwardWriter* to) {
  using google::protobuf::Timestamp;
  const TimeParts parts = PartsOfTime(time_us);
  const uint8_t* const end = to->at();
  to->Number(Timestamp::kNanosFieldNumber, static_cast<uint64_t>(parts.nanos));
  to->Number(Timestamp::kSecondsFieldNumber,
             static_cast<uint64_t>(parts.seconds));
  to->Head(field, end);
}

// A v1.Entry without its key, if there is one.
void WriteEntry(int field, const Result& result, BackwardWriter* to) {
  if (!result.has_entry) return;
  const Entry& entry = result.entry;
  const uint8_t* const end = to->at();
  WriteTime(v1::Entry::kDeadlineFieldNumber, entry.deadline_us, to);
  WriteTime(v1::Entry::kPutTimeFieldNumber, entry.put_us, to);
  to->Number(v1::Entry::kVersionFieldNumber, entry.version);
  to->Bytes(v1::Entry::kValueFieldNumber, entry.value);
  to->Head(field, end);
}

// The response of the operation's unary call; returns which field of
// OperationResult it is.
int WriteResponse(OpKind kind, const Result& result, BackwardWriter* to) {
  switch (kind) {
    case OpKind::kPut:
      WriteEntry(v1::PutResponse::kPreviousFieldNumber, result, to);
      to->Number(v1::PutResponse::kVersionFieldNumber, result.version);
      return v1::OperationResult::kPutFieldNumber;
    case OpKind::kGet:
      WriteEntry(v1::GetResponse::kEntryFieldNumber, result, to);
      return v1::OperationResult::kGetFieldNumber;
    case OpKind::kRemove:
      WriteEntry(v1::RemoveResponse::kPreviousFieldNumber, result, to);
      to->Number(v1::RemoveResponse::kRemovedFieldNumber, result.found);
      return v1::OperationResult::kRemoveFieldNumber;
    case OpKind::kContains:
      to->Number(v1::ContainsResponse::kContainsFieldNumber, result.found);
      return v1::OperationResult::kContainsFieldNumber;
    case OpKind::kTouch:
      break;
  }
  to->Number(v1::TouchResponse::kVersionFieldNumber, result.version);
  to->Number(v1::TouchResponse::kTouchedFieldNumber, result.found);
  return v1::OperationResult::kTouchFieldNumber;
}

// A google.rpc.Status, as gRPC would carry it.
std::string ErrorBytes(const absl::Status& status) {
  return ToGrpcStatus(status).error_details();
}

}  // namespace

grpc::ByteBuffer EncodeResponse(const BatchRequest& request,
                                absl::Span<const Result> results) {
  const absl::Span<const Operation> operations = request.operations();
  absl::Span<const BatchRequest::Refused> refused = request.refused();
  TIMECACHED_CHECK(operations.size() == results.size());
  const size_t count = operations.size() + refused.size();
  // Errors are rare, and their length is known only once they are written.
  std::deque<std::string> errors;
  size_t most = count * kMaxAnswerBytes;
  for (const Result& result : results) {
    if (!result.status.ok()) {
      most += errors.emplace_back(ErrorBytes(result.status)).size();
    } else if (result.has_entry) {
      most += kMaxEntryBytes + result.entry.value.size();
    }
  }
  std::deque<std::string> refusals;
  for (const BatchRequest::Refused& each : refused) {
    most += refusals.emplace_back(ErrorBytes(each.status)).size();
  }

  grpc::Slice slice(most);
  // Nobody else has it yet.
  BackwardWriter writer(const_cast<uint8_t*>(slice.end()));
  size_t left = operations.size();
  for (size_t i = count; i-- > 0;) {
    const uint8_t* const end = writer.at();
    int field = v1::OperationResult::kErrorFieldNumber;
    if (!refused.empty() && refused.back().index == i) {
      writer.Raw(refusals.back());
      refusals.pop_back();
      refused.remove_suffix(1);
    } else if (--left; results[left].status.ok()) {
      field = WriteResponse(operations[left].kind, results[left], &writer);
    } else {
      writer.Raw(errors.back());
      errors.pop_back();
    }
    writer.Head(field, end);
    writer.Head(v1::ExecuteResponse::kResultsFieldNumber, end);
  }
  TIMECACHED_CHECK(writer.at() >= slice.begin() && left == 0);
  slice =
      slice.sub(static_cast<size_t>(writer.at() - slice.begin()), slice.size());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace timecache
