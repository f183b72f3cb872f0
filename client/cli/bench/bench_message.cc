#include "client/cli/bench/bench_message.h"

#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/slice.h"
#include "timecache/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache::cli {
namespace {

// The largest step of splitmix64, an odd number without a pattern.
constexpr uint64_t kRandomStep = 0x9E37'79B9'7F4A'7C15;

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

// The request of the operation's own call.
google::protobuf::Message& RequestIn(v1::Operation& operation,
                                     const std::string& ns) {
  const auto* oneof = operation.GetDescriptor()->oneof_decl(0);
  const auto* reflection = operation.GetReflection();
  google::protobuf::Message& request = *reflection->MutableMessage(
      &operation, reflection->GetOneofFieldDescriptor(operation, oneof));
  request.GetReflection()->SetString(
      &request, request.GetDescriptor()->FindFieldByName("namespace"), ns);
  return request;
}

// "timecache.v1.PutRequest" is that of Put.
std::string MethodOf(const google::protobuf::Message& request) {
  return absl::StrCat(
      "/timecache.v1.TimeCacheService/",
      absl::StripSuffix(request.GetDescriptor()->name(), "Request"));
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

std::string BenchKey(const BenchOptions& options) {
  std::string key(kBenchKeyPrefix);
  key.append(options.key_digits(), '0');
  key.resize(options.key_bytes, 'x');
  return key;
}

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
    : key_digits_(options.key_digits()),
      may_miss_(kinds.front() >= BenchKind::kGet &&
                kinds.front() <= BenchKind::kTouch) {
  const std::string key = BenchKey(options);
  v1::ExecuteRequest execute;
  execute.set_namespace_(options.ns);
  for (const BenchKind kind : kinds) {
    *execute.add_operations() =
        *MakeOperation(options, kind, key, first++).proto();
  }
  const google::protobuf::Message& request =
      is_execute ? execute
                 : RequestIn(*execute.mutable_operations(0), options.ns);
  method_ = MethodOf(request);
  bytes_ = request.SerializeAsString();
  // No namespace has a colon, and no value anything but v.
  for (size_t at = bytes_.find(key); at != std::string::npos;
       at = bytes_.find(key, at + key.size())) {
    digits_at_.push_back(at + kBenchKeyPrefix.size());
  }
  const grpc::Slice slice(bytes_.data(), bytes_.size(),
                          grpc::Slice::STATIC_SLICE);
  buffer_ = grpc::ByteBuffer(&slice, 1);
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
      MakeOperation(options, BenchKind::kPut, BenchKey(options), 0).bytes();
  const size_t variants =
      Variants(options, MixPeriod(options.mix_percent).size());
  return uint64_t{operation_bytes} * options.batch * options.connections *
         (options.depth + variants);
}

}  // namespace timecache::cli
