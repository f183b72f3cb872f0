// An ExecuteRequest that is read by hand means exactly what it means to the
// generated parser: the same operations, the same refusals.

#include <sstream>
#include <string>

#include "tests/fuzz/fuzz.h"
#include "tests/support/batch_reference.h"

namespace timecache::server {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = fuzz::Bytes(data, size);
  const DecodedBatch decoded = DecodeBatch(Message(bytes));
  const DecodedBatch expected = ExpectedBatch(bytes);
  if (decoded != expected) {
    std::ostringstream text;
    text << "decoded: " << decoded << "\nexpected: " << expected;
    fuzz::Require(false, text.str());
  }
  return 0;
}

}  // namespace timecache::server
