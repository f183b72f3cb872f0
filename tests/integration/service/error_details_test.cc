// What is wrong with a call is said in its error's details, whoever finds it.
#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/service/call/method.h"
#include "server/service/call/request.h"
#include "tests/support/raw_call.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Field 1000 of any message, which has none, with so many bytes.
std::string UnknownField(size_t bytes) {
  std::string field = "\xc2\x3e";
  size_t size = bytes;
  for (; size >= 0x80; size >>= 7) {
    field.push_back(static_cast<char>(size | 0x80));
  }
  field.push_back(static_cast<char>(size));
  return field.append(bytes, 'x');
}

std::string PathOf(const Method& method) {
  return absl::StrCat("/", method.service, "/", method.name);
}

// All that the server has: kMethods, and health, whose calls are not counted.
std::vector<std::pair<std::string, MethodType>> AllMethods() {
  std::vector<std::pair<std::string, MethodType>> all;
  for (const Method& method : kMethods) {
    all.emplace_back(PathOf(method), method.type);
  }
  all.emplace_back("/grpc.health.v1.Health/Check", MethodType::kUnary);
  all.emplace_back("/grpc.health.v1.Health/Watch", MethodType::kServerStream);
  return all;
}

class ErrorDetailsTest : public ::testing::Test {
 protected:
  grpc::Status Do(const std::string& path,
                  const std::optional<std::string>& request) {
    return RawCall(server_.channel(), path, request, "");
  }
  grpc::Status PutOf(size_t value_bytes, size_t key_bytes = 1,
                     const std::string& name = "default") {
    v1::PutRequest request;
    request.set_namespace_(name);
    request.set_key(std::string(key_bytes, 'k'));
    request.set_value(std::string(value_bytes, 'v'));
    return Call(server_.data(), &v1::TimeCacheService::Stub::Put, request)
        .status;
  }

  TestServer server_;
};

TEST_F(ErrorDetailsTest, BytesThatAreNoRequestAreInvalidForEveryMethod) {
  for (const auto& [path, type] : AllMethods()) {
    SCOPED_TRACE(path);
    ExpectError(Do(path, "\xff\xff\xff"), StatusCode::INVALID_ARGUMENT,
                "MALFORMED_REQUEST", "the request is not a ");
  }
}

TEST_F(ErrorDetailsTest, ACallWithoutARequestIsInvalidForEveryMethod) {
  for (const auto& [path, type] : AllMethods()) {
    // A stream of none is well.
    if (type == MethodType::kBidiStream) continue;
    SCOPED_TRACE(path);
    ExpectError(Do(path, std::nullopt), StatusCode::INVALID_ARGUMENT,
                "MALFORMED_REQUEST");
  }
}

TEST_F(ErrorDetailsTest, ATooLargeRequestIsInvalidForEveryMethod) {
  const std::string request = UnknownField(kMaxRequestBytes);
  for (const auto& [path, type] : AllMethods()) {
    SCOPED_TRACE(path);
    const grpc::Status status = Do(path, request);
    const ErrorParts parts = PartsOf(status);
    EXPECT_EQ(parts.code, StatusCode::INVALID_ARGUMENT) << parts.message;
    EXPECT_EQ(parts.domain, "timecached");
    EXPECT_THAT(parts.reason, AnyOf("REQUEST_TOO_LARGE", "INVALID_FIELD"));
    EXPECT_THAT(parts.message, HasSubstr("at most"));
  }
  ExpectInvalid(Do(PathOf(methods::kPut), request), "value", "16842752");
  ExpectInvalid(Do(PathOf(methods::kExecute), request), "operations",
                "16842752");
  ExpectInvalid(Do(PathOf(methods::kPipeline), request), "operations",
                "16842752");
  const ErrorParts get = PartsOf(Do(PathOf(methods::kGet), request));
  EXPECT_EQ(get.reason, "REQUEST_TOO_LARGE");
  EXPECT_EQ(get.metadata.at("max_request_bytes"), "16842752");
}

TEST_F(ErrorDetailsTest, AValueBeyondEveryLimitIsInvalid) {
  constexpr size_t kMiB = size_t{1} << 20;
  server_.Create("large", "max_value_bytes: 16777216");
  Must(Reply<v1::PutResponse>{PutOf(16 * kMiB, 4096, "large"), {}});
  ExpectInvalid(PutOf(16 * kMiB + 1, 4096, "large"), "value", "16777216");
  ExpectInvalid(PutOf(17 * kMiB), "value", "at most");
  ExpectInvalid(PutOf(63 * kMiB), "value", "at most");
}

TEST_F(ErrorDetailsTest, WhatIsNotServedIsNamed) {
  for (const char* path : {"/timecache.v1.TimeCacheService/Nothing",
                           "/timecache.v2.TimeCacheService/Put", "/x"}) {
    const grpc::Status status = Do(path, "");
    ExpectError(status, StatusCode::UNIMPLEMENTED, "UNKNOWN_METHOD", path);
    EXPECT_EQ(PartsOf(status).metadata.at("method"), path);
  }
  const std::string path = absl::StrCat("/", std::string(2000, 'x'));
  const ErrorParts parts = PartsOf(Do(path, ""));
  EXPECT_EQ(parts.reason, "UNKNOWN_METHOD");
  EXPECT_LT(parts.message.size(), 200u);
}

// timecache.proto says which. If one of these fails, gRPC has learnt to say
// more, or the manual is wrong.
TEST_F(ErrorDetailsTest, WhatGrpcRefusesItselfHasNoDetails) {
  const grpc::Status large = PutOf(65 << 20);
  EXPECT_EQ(large.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(large.error_details(), IsEmpty());

  v1::SizeRequest request;
  request.set_namespace_("default");
  v1::SizeResponse response;
  grpc::ClientContext compressed;
  SetDeadline(&compressed);
  compressed.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  request.set_namespace_(std::string(5000, 'a'));
  const grpc::Status refused =
      server_.data()->Size(&compressed, request, &response);
  EXPECT_EQ(refused.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_details(), IsEmpty());

  grpc::ClientContext wordy;
  SetDeadline(&wordy);
  wordy.AddMetadata("x-large", std::string(16 << 10, 'x'));
  const grpc::Status exhausted =
      server_.data()->Size(&wordy, request, &response);
  EXPECT_EQ(exhausted.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(exhausted.error_details(), IsEmpty());
}

std::string TextOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A program that wants to know a reason finds it in the protos.
TEST(ErrorReasons, AllAreInTheManual) {
  const std::filesystem::path source = SOURCE_DIR;
  std::string manual;
  for (const char* name : {"timecache.proto", "namespace.proto"}) {
    manual += TextOf(source / "proto/timecache/v1" / name);
  }
  manual += TextOf(source / "proto/grpc/health/v1/health.proto");
  ASSERT_THAT(manual, Not(IsEmpty()));
  // A name in capitals with an underscore, after what makes it a reason.
  const std::regex reason(
      R"re((WithReason\([^"]*|return |SetPayload\(kReasonUrl, absl::Cord\()"([A-Z]+(_[A-Z]+)+)")re");
  std::set<std::string> reasons;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(source / "server")) {
    if (!file.is_regular_file()) continue;
    const std::string text = TextOf(file.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), reason);
         it != std::sregex_iterator(); ++it) {
      reasons.insert((*it)[2]);
    }
  }
  // The engine's own, for the group that writes a dead letter.
  EXPECT_EQ(reasons.erase("DEAD_LETTER_TOO_LARGE"), 1u);
  EXPECT_GT(reasons.size(), 25u);
  for (const std::string& each : reasons) {
    EXPECT_TRUE(absl::StrContains(manual, each)) << each;
  }
}

}  // namespace
}  // namespace timecache::test
