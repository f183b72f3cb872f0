#include "client/cli/bench/bench_message.h"

#include <cstring>
#include <numeric>

#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/slice.h"
#include "timecache/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr char kOperationTag = 0x12;  // ExecuteRequest.operations.

// The largest step of splitmix64, an odd number without a pattern.
constexpr uint64_t kRandomStep = 0x9E37'79B9'7F4A'7C15;

std::string Key(const BenchOptions& options) {
  std::string key(kBenchKeyPrefix);
  key.append(options.key_digits(), '0');
  key.resize(options.key_bytes, 'x');
  return key;
}

// `number`: of the operation in all messages, one after the other.
Operation MakeOperation(const BenchOptions& options, BenchKind kind,
                        const std::string& key, size_t number) {
  const std::string value(kind == BenchKind::kPut ||
                                  kind == BenchKind::kAppend ||
                                  kind == BenchKind::kGather
                              ? options.value_bytes
                              : 0,
                          'v');
  switch (kind) {
    case BenchKind::kGet:
      return Operation::Get(key);
    case BenchKind::kRemove:
      return Operation::Remove(key);
    case BenchKind::kContains:
      return Operation::Contains(key);
    case BenchKind::kTouch:
      return Operation::Touch(key, {.ttl = options.ttl});
    case BenchKind::kAppend:
      return Operation::Append(key, value, {.ttl = options.ttl});
    case BenchKind::kCombine:
      return Operation::Combine(key, Combination::kAdd, 1,
                                {.ttl = options.ttl});
    case BenchKind::kGather:
      return Operation::Gather(
          key, std::to_string(number % kBenchParts), value,
          {.expected_parts = kBenchParts, .ttl = options.ttl});
    case BenchKind::kPut:
      break;
  }
  return Operation::Put(key, value, {.ttl = options.ttl});
}

// The same as the request of a call of its own.
std::string UnaryBytes(v1::Operation operation, const std::string& ns) {
  const auto serialize = [&ns](auto* request) {
    request->set_namespace_(ns);
    return request->SerializeAsString();
  };
  switch (operation.request_case()) {
    case v1::Operation::kGet:
      return serialize(operation.mutable_get());
    case v1::Operation::kRemove:
      return serialize(operation.mutable_remove());
    case v1::Operation::kContains:
      return serialize(operation.mutable_contains());
    case v1::Operation::kTouch:
      return serialize(operation.mutable_touch());
    case v1::Operation::kAppend:
      return serialize(operation.mutable_append());
    case v1::Operation::kCombine:
      return serialize(operation.mutable_combine());
    case v1::Operation::kGather:
      return serialize(operation.mutable_gather());
    default:
      return serialize(operation.mutable_put());
  }
}

std::string Varint(size_t number) {
  uint8_t bytes[10];
  const uint8_t* const end =
      CodedOutputStream::WriteVarint64ToArray(number, bytes);
  return std::string(reinterpret_cast<const char*>(bytes), end - bytes);
}

// Messages after which the kinds of their operations, and their parts, come
// again.
size_t Variants(const BenchOptions& options, size_t period) {
  const bool has_parts =
      options.mix_percent[static_cast<size_t>(BenchKind::kGather)] > 0;
  if (has_parts) period = std::lcm(period, size_t{kBenchParts});
  return period / std::gcd(period, options.batch);
}

}  // namespace

BenchKeys::BenchKeys(uint64_t keys, bool is_sequential, uint64_t seed)
    : keys_(keys), is_sequential_(is_sequential), state_(seed) {}

uint64_t BenchKeys::Next() {
  if (is_sequential_) return state_++ % keys_;
  // splitmix64, scaled down by a multiplication.
  uint64_t z = (state_ += kRandomStep);
  z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
  z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
  z ^= z >> 31;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(z) * keys_) >>
                               64);
}

std::vector<BenchKind> MixPeriod(
    const std::array<int, kBenchKinds>& mix_percent) {
  int divisor = 0;
  for (const int percent : mix_percent) divisor = std::gcd(divisor, percent);
  const int period =
      std::accumulate(mix_percent.begin(), mix_percent.end(), 0) / divisor;
  std::array<int, kBenchKinds> used = {};
  std::vector<BenchKind> kinds;
  for (int i = 1; i <= period; ++i) {
    // The kind that is furthest behind its share.
    size_t next = 0;
    int next_behind = INT32_MIN;
    for (size_t k = 0; k < kBenchKinds; ++k) {
      const int behind = mix_percent[k] / divisor * i - period * used[k];
      if (mix_percent[k] == 0 || behind <= next_behind) continue;
      next = k;
      next_behind = behind;
    }
    ++used[next];
    kinds.push_back(static_cast<BenchKind>(next));
  }
  return kinds;
}

void WriteDigits(uint64_t number, size_t width, char* to) {
  static constexpr auto kPairs = [] {
    std::array<char, 200> pairs = {};
    for (size_t i = 0; i < 100; ++i) {
      pairs[2 * i] = static_cast<char>('0' + i / 10);
      pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return pairs;
  }();
  char* at = to + width;
  for (; at - to >= 2; number /= 100) {
    at -= 2;
    std::memcpy(at, &kPairs[2 * (number % 100)], 2);
  }
  if (at > to) *to = static_cast<char>('0' + number % 10);
}

BenchMessage::BenchMessage(const BenchOptions& options,
                           const std::vector<BenchKind>& kinds, bool is_execute,
                           size_t first)
    : key_digits_(options.key_digits()), kind_(kinds.front()) {
  const std::string key = Key(options);
  if (is_execute) {
    v1::ExecuteRequest head;
    head.set_namespace_(options.ns);
    bytes_ = head.SerializeAsString();
    for (const BenchKind kind : kinds) {
      const std::string bytes = MakeOperation(options, kind, key, first++)
                                    .proto()
                                    ->SerializeAsString();
      Append(kOperationTag + Varint(bytes.size()), bytes, key);
    }
  } else {
    Append("",
           UnaryBytes(*MakeOperation(options, kind_, key, first).proto(),
                      options.ns),
           key);
  }
  const grpc::Slice slice(bytes_.data(), bytes_.size(),
                          grpc::Slice::STATIC_SLICE);
  buffer_ = grpc::ByteBuffer(&slice, 1);
}

void BenchMessage::Append(const std::string& head, const std::string& bytes,
                          const std::string& key) {
  bytes_ += head;
  // The key comes before the value, and no namespace has a colon.
  digits_at_.push_back(bytes_.size() + bytes.find(key) +
                       kBenchKeyPrefix.size());
  bytes_ += bytes;
}

void BenchMessage::SetKeys(BenchKeys& keys) {
  for (const size_t at : digits_at_) {
    WriteDigits(keys.Next(), key_digits_, &bytes_[at]);
  }
}

BenchMessages::BenchMessages(const BenchOptions& options, size_t depth) {
  const std::vector<BenchKind> period = MixPeriod(options.mix_percent);
  const size_t variants = Variants(options, period.size());
  const size_t count = (depth + variants - 1) / variants * variants;
  for (size_t i = 0; i < count; ++i) {
    std::vector<BenchKind> kinds;
    for (size_t j = 0; j < options.batch; ++j) {
      kinds.push_back(period[(i * options.batch + j) % period.size()]);
    }
    messages_.push_back(std::make_unique<BenchMessage>(
        options, kinds, options.batch > 1, i * options.batch));
  }
}

BenchMessage& BenchMessages::Next(BenchKeys& keys) {
  BenchMessage& message = *messages_[next_];
  if (++next_ == messages_.size()) next_ = 0;
  message.SetKeys(keys);
  return message;
}

uint64_t BenchMessages::BytesOfAll(const BenchOptions& options) {
  const size_t operation_bytes =
      MakeOperation(options, BenchKind::kPut, Key(options), 0).bytes();
  const size_t variants =
      Variants(options, MixPeriod(options.mix_percent).size());
  return uint64_t{operation_bytes} * options.batch * options.connections *
         (options.depth + variants);
}

}  // namespace timecache::cli
