#include "server/service/batch_response.h"

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/engine/check.h"
#include "server/engine/clock.h"
#include "server/service/status.h"

namespace timecache {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;
// All fields here are below 16.
constexpr size_t kTagBytes = 1;
constexpr int64_t kNanosPerMicro = 1'000;

size_t VarintSize(uint64_t value) {
  return CodedOutputStream::VarintSize64(value);
}

// Of a field with such a value, nothing if it is the default.
size_t NumberSize(uint64_t value) {
  return value == 0 ? 0 : kTagBytes + VarintSize(value);
}

size_t DelimitedSize(size_t size) {
  return kTagBytes + VarintSize(size) + size;
}

size_t BytesSize(absl::string_view value) {
  return value.empty() ? 0 : DelimitedSize(value.size());
}

uint8_t* WriteTag(int field, int wire_type, uint8_t* to) {
  *to = static_cast<uint8_t>(field << 3 | wire_type);
  return to + 1;
}

uint8_t* WriteNumber(int field, uint64_t value, uint8_t* to) {
  if (value == 0) return to;
  return CodedOutputStream::WriteVarint64ToArray(value,
                                                 WriteTag(field, kVarint, to));
}

// The tag and length of a message of `size` bytes.
uint8_t* WriteHead(int field, size_t size, uint8_t* to) {
  return CodedOutputStream::WriteVarint64ToArray(
      size, WriteTag(field, kLengthDelimited, to));
}

uint8_t* WriteBytes(int field, absl::string_view value, uint8_t* to) {
  if (value.empty()) return to;
  to = WriteHead(field, value.size(), to);
  std::memcpy(to, value.data(), value.size());
  return to + value.size();
}

// A google.protobuf.Timestamp.
struct Time {
  uint64_t seconds;
  uint64_t nanos;

  explicit Time(int64_t time_us) {
    int64_t whole = time_us / kMicrosPerSecond;
    int64_t micros = time_us % kMicrosPerSecond;
    if (micros < 0) {
      --whole;
      micros += kMicrosPerSecond;
    }
    seconds = static_cast<uint64_t>(whole);
    nanos = static_cast<uint64_t>(micros * kNanosPerMicro);
  }
  size_t size() const { return NumberSize(seconds) + NumberSize(nanos); }
  uint8_t* Write(int field, uint8_t* to) const {
    using google::protobuf::Timestamp;
    to = WriteHead(field, size(), to);
    to = WriteNumber(Timestamp::kSecondsFieldNumber, seconds, to);
    return WriteNumber(Timestamp::kNanosFieldNumber, nanos, to);
  }
};

// A v1.Entry without its key.
size_t EntrySize(const Entry& entry) {
  return BytesSize(entry.value) + NumberSize(entry.version) +
         DelimitedSize(Time(entry.put_us).size()) +
         DelimitedSize(Time(entry.deadline_us).size());
}

uint8_t* WriteEntry(int field, const Entry& entry, uint8_t* to) {
  to = WriteHead(field, EntrySize(entry), to);
  to = WriteBytes(v1::Entry::kValueFieldNumber, entry.value, to);
  to = WriteNumber(v1::Entry::kVersionFieldNumber, entry.version, to);
  to = Time(entry.put_us).Write(v1::Entry::kPutTimeFieldNumber, to);
  return Time(entry.deadline_us).Write(v1::Entry::kDeadlineFieldNumber, to);
}

// One response of the unary calls: which field of OperationResult it is, and
// what stands in it. All of them are a number or two and an entry.
struct Shape {
  int field;
  // Of the response's fields: 0 is none.
  int found_field;
  int version_field;
  int entry_field;
};

const Shape& ShapeOf(OpKind kind) {
  using Of = v1::OperationResult;
  static constexpr Shape kPut = {Of::kPutFieldNumber, 0,
                                 v1::PutResponse::kVersionFieldNumber,
                                 v1::PutResponse::kPreviousFieldNumber};
  static constexpr Shape kGet = {Of::kGetFieldNumber, 0, 0,
                                 v1::GetResponse::kEntryFieldNumber};
  static constexpr Shape kRemove = {Of::kRemoveFieldNumber,
                                    v1::RemoveResponse::kRemovedFieldNumber, 0,
                                    v1::RemoveResponse::kPreviousFieldNumber};
  static constexpr Shape kContains = {
      Of::kContainsFieldNumber, v1::ContainsResponse::kContainsFieldNumber, 0,
      0};
  static constexpr Shape kTouch = {Of::kTouchFieldNumber,
                                   v1::TouchResponse::kTouchedFieldNumber,
                                   v1::TouchResponse::kVersionFieldNumber, 0};
  switch (kind) {
    case OpKind::kPut:
      return kPut;
    case OpKind::kGet:
      return kGet;
    case OpKind::kRemove:
      return kRemove;
    case OpKind::kContains:
      return kContains;
    case OpKind::kTouch:
      break;
  }
  return kTouch;
}

size_t ResponseSize(const Shape& shape, const Result& result) {
  size_t size = 0;
  if (shape.found_field != 0) size += NumberSize(result.found);
  if (shape.version_field != 0) size += NumberSize(result.version);
  if (shape.entry_field != 0 && result.has_entry)
    size += DelimitedSize(EntrySize(result.entry));
  return size;
}

uint8_t* WriteResponse(const Shape& shape, const Result& result, uint8_t* to) {
  if (shape.found_field != 0)
    to = WriteNumber(shape.found_field, result.found, to);
  if (shape.version_field != 0)
    to = WriteNumber(shape.version_field, result.version, to);
  if (shape.entry_field != 0 && result.has_entry)
    to = WriteEntry(shape.entry_field, result.entry, to);
  return to;
}

// What one operation is answered with.
struct Answer {
  // Null for an error.
  const Shape* shape;
  const Result* result;
  // Its google.rpc.Status, as gRPC would carry it.
  absl::string_view error;
  // Of the response or the error.
  size_t size;

  int field() const {
    return shape != nullptr ? shape->field
                            : v1::OperationResult::kErrorFieldNumber;
  }
};

uint8_t* WriteAnswer(const Answer& answer, uint8_t* to) {
  to = WriteHead(v1::ExecuteResponse::kResultsFieldNumber,
                 DelimitedSize(answer.size), to);
  to = WriteHead(answer.field(), answer.size, to);
  if (answer.shape != nullptr)
    return WriteResponse(*answer.shape, *answer.result, to);
  std::memcpy(to, answer.error.data(), answer.size);
  return to + answer.size;
}

// Two passes: what everything takes, then everything into its place.
class Encoder {
 public:
  void AddError(const absl::Status& status) {
    errors_.push_back(ToGrpcStatus(status).error_details());
    const std::string& error = errors_.back();
    answers_.push_back({nullptr, nullptr, error, error.size()});
  }

  void Add(const Operation& op, const Result& result) {
    if (!result.status.ok()) return AddError(result.status);
    const Shape& shape = ShapeOf(op.kind);
    answers_.push_back({&shape, &result, {}, ResponseSize(shape, result)});
  }

  size_t count() const { return answers_.size(); }

  grpc::Slice Write() const {
    size_t size = 0;
    for (const Answer& answer : answers_)
      size += DelimitedSize(DelimitedSize(answer.size));
    grpc::Slice slice(size);
    // Nobody else has it yet.
    auto* to = const_cast<uint8_t*>(slice.begin());
    for (const Answer& answer : answers_) to = WriteAnswer(answer, to);
    TIMECACHED_CHECK(to == slice.end());
    return slice;
  }

 private:
  absl::InlinedVector<Answer, 128> answers_;
  // Errors keep their place as more come.
  std::deque<std::string> errors_;
};

}  // namespace

grpc::ByteBuffer EncodeResponse(const BatchRequest& request,
                                absl::Span<const Result> results) {
  const absl::Span<const Operation> operations = request.operations();
  TIMECACHED_CHECK(operations.size() == results.size());
  Encoder encoder;
  auto refused = request.refused();
  for (size_t i = 0; i < operations.size() || !refused.empty();) {
    if (!refused.empty() && refused.front().index == encoder.count()) {
      encoder.AddError(refused.front().status);
      refused.remove_prefix(1);
    } else {
      encoder.Add(operations[i], results[i]);
      ++i;
    }
  }
  grpc::Slice slice = encoder.Write();
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace timecache
