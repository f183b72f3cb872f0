// Bad input to the data's RPCs: code, reason, field and limit of each.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using Data = v1::TimeCacheService::Stub;

class DataErrorsTest : public ::testing::Test {
 protected:
  template <typename Request, typename Response>
  grpc::Status Do(grpc::Status (Data::*method)(grpc::ClientContext*,
                                               const Request&, Response*),
                  const std::string& request) {
    return Call(server_.data(), method, Proto<Request>(request)).status;
  }
  template <typename Request, typename Response>
  grpc::Status Stream(std::unique_ptr<grpc::ClientReader<Response>> (
                          Data::*method)(grpc::ClientContext*, const Request&),
                      const std::string& request) {
    grpc::ClientContext context;
    SetDeadline(&context);
    auto reader = (server_.data()->*method)(&context, Proto<Request>(request));
    Response response;
    EXPECT_FALSE(reader->Read(&response)) << response.ShortDebugString();
    return reader->Finish();
  }

  // Every RPC, with a request that begins with `names` and has `fields`.
  using Rpc = std::function<grpc::Status(const std::string&)>;
  std::vector<Rpc> KeyRpcs() {
    return {
        [this](const std::string& r) { return Do(&Data::Put, r); },
        [this](const std::string& r) { return Do(&Data::Get, r); },
        [this](const std::string& r) { return Do(&Data::Remove, r); },
        [this](const std::string& r) { return Do(&Data::Contains, r); },
        [this](const std::string& r) { return Do(&Data::Touch, r); },
    };
  }

  TestServer server_;
};

TEST_F(DataErrorsTest, MalformedNamesAreRefusedByEveryRpc) {
  for (const std::string& name :
       {std::string("UPPER"), std::string("-a"), std::string("a-"),
        std::string("a_b"), std::string(".a"), std::string(64, 'a')}) {
    const std::string fields = absl::StrCat("namespace: '", name, "'");
    for (const Rpc& rpc : KeyRpcs()) {
      ExpectInvalid(rpc(fields + " key: 'k'"), "namespace",
                    "1 to 63 characters");
    }
    ExpectInvalid(Do(&Data::Size, fields), "namespace", "1 to 63 characters");
    ExpectInvalid(Stream(&Data::Scan, fields), "namespace",
                  "1 to 63 characters");
    ExpectInvalid(
        Stream(&Data::WatchExpired, absl::StrCat("namespaces: '", name, "'")),
        "namespaces", "1 to 63 characters");
  }
  ExpectInvalid(Do(&Data::Size, ""), "namespace", "must be set");
}

TEST_F(DataErrorsTest, KeysOutOfRangeAreRefusedByEveryRpc) {
  const std::string long_key(4097, 'k');
  for (const Rpc& rpc : KeyRpcs()) {
    ExpectInvalid(rpc("namespace: 'default'"), "key", "must not be empty");
    ExpectInvalid(
        rpc(absl::StrCat("namespace: 'default' key: '", long_key, "'")), "key",
        "4096");
  }
  const std::string prefix = absl::StrCat("key_prefix: '", long_key, "'");
  ExpectInvalid(Stream(&Data::Scan, "namespace: 'default' " + prefix),
                "key_prefix", "4096");
  ExpectInvalid(Stream(&Data::WatchExpired, "namespaces: 'default' " + prefix),
                "key_prefix", "4096");
}

}  // namespace
}  // namespace timecache::test
