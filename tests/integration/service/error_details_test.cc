// What is wrong with a call is said in its error's details, whoever finds it.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "server/api/method.h"
#include "server/rpc/call/request.h"
#include "tests/support/net/raw_call.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

std::string PathOf(const server::Method& method) {
  return absl::StrCat("/", method.service, "/", method.name);
}

// All that the server has: kMethods, and health, whose calls are not counted.
std::vector<std::pair<std::string, server::MethodType>> AllMethods() {
  std::vector<std::pair<std::string, server::MethodType>> all;
  for (const server::Method& method : server::kMethods) {
    all.emplace_back(PathOf(method), method.type);
  }
  all.emplace_back("/grpc.health.v1.Health/Check", server::MethodType::kUnary);
  all.emplace_back("/grpc.health.v1.Health/Watch",
                   server::MethodType::kServerStream);
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
                v1::MALFORMED_REQUEST, "the request is not a ");
  }
}

TEST_F(ErrorDetailsTest, ACallWithoutARequestIsInvalidForEveryMethod) {
  for (const auto& [path, type] : AllMethods()) {
    // A stream of none is well.
    if (type == server::MethodType::kBidiStream) continue;
    SCOPED_TRACE(path);
    ExpectError(Do(path, std::nullopt), StatusCode::INVALID_ARGUMENT,
                v1::MALFORMED_REQUEST);
  }
}

TEST_F(ErrorDetailsTest, ATooLargeRequestIsInvalidForEveryMethod) {
  const std::string request = UnknownField(server::kMaxRequestBytes);
  for (const auto& [path, type] : AllMethods()) {
    SCOPED_TRACE(path);
    const grpc::Status status = Do(path, request);
    const ErrorParts parts = PartsOf(status);
    EXPECT_EQ(parts.code, StatusCode::INVALID_ARGUMENT) << parts.message;
    EXPECT_EQ(parts.domain, "timecached");
    EXPECT_THAT(parts.reason, AnyOf(v1::REQUEST_TOO_LARGE, v1::INVALID_FIELD));
    EXPECT_THAT(parts.message, HasSubstr("at most"));
  }
  ExpectInvalid(Do(PathOf(server::methods::kPut), request), "value",
                "16842752");
  ExpectInvalid(Do(PathOf(server::methods::kExecute), request), "operations",
                "16842752");
  ExpectInvalid(Do(PathOf(server::methods::kPipeline), request), "operations",
                "16842752");
  const ErrorParts get = PartsOf(Do(PathOf(server::methods::kGet), request));
  EXPECT_EQ(get.reason, v1::REQUEST_TOO_LARGE);
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
    ExpectError(status, StatusCode::UNIMPLEMENTED, v1::UNKNOWN_METHOD, path);
    EXPECT_EQ(PartsOf(status).metadata.at("method"), path);
  }
  const std::string path = absl::StrCat("/", std::string(2000, 'x'));
  const ErrorParts parts = PartsOf(Do(path, ""));
  EXPECT_EQ(parts.reason, v1::UNKNOWN_METHOD);
  EXPECT_LT(parts.message.size(), 200u);
}

// data.proto says which. If one of these fails, gRPC has learnt to say
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

// KEY_EXISTS is kKeyExists in the server's code.
std::string NameInCode(const std::string& name) {
  std::string to = "k";
  for (const absl::string_view word : absl::StrSplit(name, '_')) {
    to.push_back(word[0]);
    to += absl::AsciiStrToLower(word.substr(1));
  }
  return to;
}

// A program that has a reason in a switch does not wait for it in vain.
TEST(ErrorReasons, AllOfTheManualAreGiven) {
  std::set<std::string> given;
  const std::regex reason(R"re(\bReason::(k[A-Za-z]+))re");
  for (const auto& file : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(SOURCE_DIR) / "server")) {
    // Which have all of them.
    if (!file.is_regular_file() || file.path().stem() == "reason") continue;
    const std::string text = TextOf(file.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), reason);
         it != std::sregex_iterator(); ++it) {
      given.insert((*it)[1]);
    }
  }
  std::set<std::string> known;
  const auto* const reasons = v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    if (reasons->value(i)->number() == 0) continue;
    known.insert(NameInCode(reasons->value(i)->name()));
  }
  // Of earlier versions.
  EXPECT_EQ(known.erase("kMaxHealthWatches"), 1u);
  EXPECT_GT(known.size(), 25u);
  EXPECT_EQ(given, known);
}

}  // namespace
}  // namespace timecache::test
