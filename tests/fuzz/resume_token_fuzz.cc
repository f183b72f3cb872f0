// A resume token is read as it was written, or refused. The fuzzer does not
// find the checksum by chance: its bytes are tried as they are, as the content
// of a token, and as damage to a good one.

#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/rpc/watch/resume_token.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::server {
namespace {

using fuzz::Require;

void CheckRefusal(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status), status.ToString());
  Require(FieldOf(status) == "resume_tokens", "the refusal names the field");
}

void Check(const std::string& token) {
  const absl::StatusOr<ResumePoint> point = DecodeResumeToken(token);
  if (!point.ok()) return CheckRefusal(point.status());
  Require(ValidateNamespaceName(point->map).ok(), "a name that none can have");
  Require(EncodeResumeToken(point->map, point->point) == token,
          "a token that no server has written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Check(fuzz::Bytes(data, size));

  FuzzedDataProvider input(data, size);
  LogPoint point;
  point.log_id = input.ConsumeIntegral<uint64_t>();
  point.next_event = input.ConsumeIntegral<uint64_t>();
  point.watermark_us = input.ConsumeIntegral<int64_t>();
  const auto place = input.ConsumeIntegral<uint8_t>();
  const auto damage = input.ConsumeIntegral<uint8_t>();
  const std::string map = input.ConsumeRemainingBytesAsString();
  std::string token = EncodeResumeToken(map, point);
  Check(token);
  Require(DecodeResumeToken(token).ok() == ValidateNamespaceName(map).ok(),
          "a token is good if its name is");
  token[place % token.size()] ^= static_cast<char>(damage);
  Check(token);
  Require(damage == 0 || !DecodeResumeToken(token).ok(),
          "a damaged token that is taken");
  return 0;
}

}  // namespace timecache::server
