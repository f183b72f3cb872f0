// A server with access rules, and calls with the tokens of its principals.

#ifndef TIMECACHED_TESTS_INTEGRATION_SECURITY_ACCESS_FIXTURE_H_
#define TIMECACHED_TESTS_INTEGRATION_SECURITY_ACCESS_FIXTURE_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/edge/access_file.h"
#include "tests/support/net/certificates.h"
#include "tests/support/rpc.h"
#include "tests/support/test_server.h"

namespace timecache::test {

// The token of a principal of these tests.
inline std::string TokenOf(const std::string& name) {
  return absl::StrCat("token-of-", name);
}

// "- {name: NAME, token_sha256: [..]}", for a list of principals.
inline std::string PrincipalLine(const std::string& name) {
  const server::TokenHash hash = server::HashToken(TokenOf(name));
  return absl::StrCat(
      "- {name: ", name, ", token_sha256: [",
      absl::BytesToHexString(absl::string_view(
          reinterpret_cast<const char*>(hash.data()), hash.size())),
      "]}\n");
}

// Makes the call say that `name` makes it; "" for nobody.
inline void SignAs(const std::string& name, grpc::ClientContext* context) {
  SetDeadline(context);
  if (name.empty()) return;
  context->AddMetadata("authorization", absl::StrCat("Bearer ", TokenOf(name)));
}

template <typename Stub, typename Request, typename Response>
Reply<Response> CallAs(const std::string& name, Stub* stub,
                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                    const Request&, Response*),
                       const Request& request) {
  grpc::ClientContext context;
  SignAs(name, &context);
  Reply<Response> reply;
  reply.status = (stub->*method)(&context, request, &reply.response);
  return reply;
}

// Principals: admin, who may do everything; reader, writer, watcher and worker
// (read, write; watch; watch and settle, admin), who may do that in "default";
// nobody, who may do nothing.
class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    SetRules();
    auto file =
        server::AccessFile::Open(directory_.Path("access.yaml"), &watch_);
    EXPECT_TRUE(file.ok()) << file.status();
    access_ = *std::move(file);
    TestServerOptions options;
    options.access = access_.get();
    options.change = [](server::ServerOptions* to) {
      to->describe_journal = [](v1::JournalStatus* journal) {
        journal->set_directory("/a/journal");
      };
    };
    server_ = std::make_unique<TestServer>(options);
  }

  static std::string Rule(const std::string& principal,
                          const std::string& verbs,
                          const std::string& name = "default") {
    return absl::StrCat("- {principals: [", principal, "], namespaces: [\"",
                        name, "\"], verbs: [", verbs, "]}\n");
  }

  // Those of the class comment, without the principal `without` and with the
  // rules `more`.
  void SetRules(const std::string& without = "", const std::string& more = "") {
    std::string principals = "principals:\n";
    std::string rules = "rules:\n";
    const std::pair<std::string, std::string> all[] = {
        {"reader", "read"},
        {"writer", "write"},
        {"watcher", "watch"},
        {"worker", "watch, settle"},
    };
    for (const std::string name : {"admin", "nobody"}) {
      principals += PrincipalLine(name);
    }
    rules += Rule("admin", "read, write, watch, settle, admin", "*");
    for (const auto& [name, verbs] : all) {
      if (name == without) continue;
      principals += PrincipalLine(name);
      rules += Rule(name, verbs);
    }
    directory_.Write("access.yaml", principals + rules + more);
    watch_.Check();
  }

  v1::TimeCacheService::Stub* data() { return server_->data(); }

  // A call of any service of timecache.v1.
  template <typename Stub, typename Request, typename Response>
  Reply<Response> As(const std::string& name,
                     grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                  const Request&, Response*),
                     const std::string& request) {
    return CallAs(name, StubOf<Stub>(), method, Proto<Request>(request));
  }

  template <typename Stub>
  Stub* StubOf() {
    if constexpr (std::is_same_v<Stub, v1::TimeCacheService::Stub>) {
      return server_->data();
    } else if constexpr (std::is_same_v<Stub, v1::NamespaceService::Stub>) {
      return server_->namespaces();
    } else if constexpr (std::is_same_v<Stub, v1::GroupService::Stub>) {
      return server_->groups();
    } else {
      return server_->about();
    }
  }

  const TemporaryDirectory directory_;
  server::FileWatch watch_;
  std::shared_ptr<server::AccessFile> access_;
  std::unique_ptr<TestServer> server_;
};

inline void ExpectDenied(const grpc::Status& status, const std::string& verb,
                         const std::string& name = "default") {
  ExpectError(status, grpc::StatusCode::PERMISSION_DENIED, v1::ACCESS_DENIED,
              name);
  EXPECT_EQ(PartsOf(status).metadata["verb"], verb);
  EXPECT_EQ(PartsOf(status).metadata["namespace"], name);
}

inline void ExpectUnknown(const grpc::Status& status, v1::ErrorReason reason) {
  ExpectError(status, grpc::StatusCode::UNAUTHENTICATED, reason);
}

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_INTEGRATION_SECURITY_ACCESS_FIXTURE_H_
