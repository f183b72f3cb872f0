// Whole calls to a whole server. The bytes are records: the number of a method,
// the size of a message in two bytes, the message. Records of a method that
// takes a stream, one behind the other, are one call; the last number of all
// lets time pass.

#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_world.h"

namespace timecache::fuzz {
namespace {

constexpr uint8_t kPassTime = 255;
constexpr size_t kHeaderBytes = 3;
constexpr size_t kMaxRecords = 32;
constexpr int64_t kMaxStepUs = 100 * kMicrosPerSecond;

struct Record {
  uint8_t method;
  std::string message;
};

std::vector<Record> Records(std::string_view bytes) {
  std::vector<Record> records;
  while (bytes.size() >= kHeaderBytes && records.size() < kMaxRecords) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    const uint8_t method = byte(0);
    const size_t size = byte(1) | size_t{byte(2)} << 8;
    bytes.remove_prefix(kHeaderBytes);
    records.push_back({method, std::string(bytes.substr(0, size))});
    bytes.remove_prefix(records.back().message.size());
  }
  return records;
}

// The first bytes of the message, as a number.
int64_t StepUs(const std::string& message) {
  int64_t step_us = 0;
  for (const char c : message.substr(0, sizeof(int32_t))) {
    step_us = step_us << 8 | static_cast<uint8_t>(c);
  }
  return step_us % kMaxStepUs;
}

}  // namespace
}  // namespace timecache::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace timecache::fuzz;
  static RpcWorld& world = *new RpcWorld;
  world.Reset();
  const std::vector<Record> records = Records(Bytes(data, size));
  for (size_t i = 0; i < records.size(); ++i) {
    const uint8_t method = records[i].method;
    if (method == kPassTime) {
      world.Pass(StepUs(records[i].message));
      continue;
    }
    std::vector<std::string> messages = {records[i].message};
    while (world.IsClientStreaming(method) && i + 1 < records.size() &&
           records[i + 1].method == method) {
      messages.push_back(records[++i].message);
    }
    world.Call(method, messages);
    world.Check();
  }
  return 0;
}
