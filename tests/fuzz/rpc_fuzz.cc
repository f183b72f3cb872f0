// Whole calls to a whole server, as records (rpc_records.h); the last number of
// all lets time pass.

#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_records.h"
#include "tests/fuzz/rpc_world.h"

namespace timecache::fuzz {
namespace {

constexpr uint8_t kPassTime = 255;
constexpr int64_t kMaxStepUs = 100 * server::kMicrosPerSecond;

// The first bytes of the message, as a number.
int64_t StepUs(const std::string& message) {
  int64_t step_us = 0;
  for (const char c : message.substr(0, sizeof(int32_t))) {
    step_us = step_us << 8 | static_cast<uint8_t>(c);
  }
  return step_us % kMaxStepUs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static RpcWorld& world = *new RpcWorld;
  world.Reset();
  const std::vector<RpcRecord> records = Records(Bytes(data, size));
  for (size_t i = 0; i < records.size(); ++i) {
    const uint8_t method = records[i].method;
    if (method == kPassTime) {
      world.Pass(StepUs(records[i].message));
      continue;
    }
    const std::vector<std::string> messages =
        MessagesOfCall(records, world.IsClientStreaming(method), &i);
    world.Call(method, messages);
    world.Check();
  }
  return 0;
}

}  // namespace timecache::fuzz
