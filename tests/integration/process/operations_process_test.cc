// timecached as a process in the hands of an operator: reloads, service
// managers, delays, logs that nobody takes.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/process.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Names = v1::NamespaceService::Stub;

constexpr char kListen[] = "listeners:\n  - address: 127.0.0.1:0\n";

class OperationsProcessTest : public ::testing::Test {
 protected:
  // What the server reads, with a listener of its own.
  std::string WriteConfig(const std::string& yaml) {
    const std::string path = directory_.path() + "/timecached.yaml";
    std::ofstream(path) << kListen << yaml;
    return path;
  }

  static json Reload(ServerProcess* server, const std::string& event) {
    server->process().Signal(SIGHUP);
    return server->AwaitEvent(event);
  }
  static std::vector<std::string> NamesOf(ServerProcess* server) {
    const auto stub = v1::NamespaceService::NewStub(server->channel());
    const auto list = Must(
        Call(stub.get(), &Names::ListNamespaces, v1::ListNamespacesRequest()));
    std::vector<std::string> names;
    for (const v1::Namespace& each : list.namespaces()) {
      names.push_back(each.name());
    }
    return names;
  }

  const server::TemporaryDirectory directory_;
};

TEST_F(OperationsProcessTest, SighupAppliesWhatCanChangeAndNamesWhatCannot) {
  ServerProcess server({"--config", WriteConfig("namespaces:\n  - name: a\n")});
  WriteConfig(
      "namespaces:\n  - name: b\n"
      "limits:\n  max_connections: 7\n  max_watchers: 5\n");
  const json line = Reload(&server, "config_reloaded");
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["applied"], "limits.max_watchers,namespaces");
  EXPECT_EQ(line["needs_restart"], "limits.max_connections");
  EXPECT_EQ(line["failed"], "none");
  // None is deleted.
  EXPECT_THAT(NamesOf(&server), ElementsAre("a", "b"));
}

TEST_F(OperationsProcessTest, FlagsStayAboveTheFileThatIsReadAgain) {
  // Every ServerProcess is told to log JSON.
  ServerProcess server(
      {"--listen", "127.0.0.1:0", "--config", WriteConfig("")});
  WriteConfig("  - address: 127.0.0.1:1\nlog:\n  format: text\n");
  const json line = Reload(&server, "config_reloaded");
  EXPECT_EQ(line["applied"], "none");
  EXPECT_EQ(line["needs_restart"], "none");
}

TEST_F(OperationsProcessTest, TheServiceManagerIsToldAll) {
  const std::string path = directory_.path() + "/notify";
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_GE(fd, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
      0);
  timeval patience = {60, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const auto next = [fd] {
    std::string bytes(4096, '\0');
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  };
  {
    ServerProcess server({"--listen", "127.0.0.1:0"},
                         {{"NOTIFY_SOCKET", path}});
    EXPECT_THAT(next(), HasSubstr("READY=1"));
    server.process().Signal(SIGHUP);
    EXPECT_THAT(next(), HasSubstr("RELOADING=1\nMONOTONIC_USEC="));
    EXPECT_THAT(next(), HasSubstr("READY=1"));
    server.process().Signal(SIGTERM);
    EXPECT_THAT(next(), HasSubstr("STOPPING=1\nEXTEND_TIMEOUT_USEC=50000000"));
    EXPECT_EQ(server.process().Wait().code, 0);
  }
  close(fd);
}

TEST_F(OperationsProcessTest, ItServesOnForTheDrainDelay) {
  ServerProcess server({"--config", WriteConfig("drain_delay: 5m\n")});
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.AwaitEvent("drain_started")["drain_delay_ms"], 300'000);
  // It says so a moment later.
  constexpr int kMaxAsks = 10'000;
  int health = 1;
  for (int i = 0; i < kMaxAsks && health == 1; ++i) {
    health = HealthOf(server.channel());
  }
  EXPECT_EQ(health, 2);
  const Exit exit =
      RunToEnd({TIMECACHECTL, "--address", server.address(), "health"});
  EXPECT_EQ(exit.code, 1);
  EXPECT_EQ(exit.out, "NOT_SERVING\n");
  Must(Call(server.data(), &v1::TimeCacheService::Stub::Put,
            Proto<v1::PutRequest>("namespace: 'default' key: 'a'")));
  // A second signal ends the delay, and the drain goes on as always.
  server.process().Signal(SIGTERM);
  const json stopped = server.AwaitEvent("server_stopped");
  EXPECT_EQ(stopped["calls_cancelled"], false);
  EXPECT_EQ(server.process().Wait().code, 0);
}

// Its log cannot be written at all.
TEST_F(OperationsProcessTest, AFullDiskBelowTheLogIsNoHarm) {
  const std::string target = "unix:" + directory_.path() + "/socket";
  ChildProcess server({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>/dev/full",
                       TIMECACHED, "--listen", target});
  const auto channel = Connected(
      grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  const auto data = v1::TimeCacheService::NewStub(channel);
  Must(Call(data.get(), &v1::TimeCacheService::Stub::Put,
            Proto<v1::PutRequest>("namespace: 'default' key: 'a'")));
  server.Signal(SIGHUP);
  EXPECT_EQ(HealthOf(channel), 1);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait().code, 0);
}

// Its log goes into a pipe whose reader is stuck.
TEST_F(OperationsProcessTest, ALogThatNobodyReadsHoldsNobodyUp) {
  ServerProcess server;
  const auto stub = v1::NamespaceService::NewStub(server.channel());
  // A line each, of some hundred bytes: more than a pipe holds.
  constexpr int kNamespaces = 600;
  for (int i = 0; i < kNamespaces; ++i) {
    v1::CreateNamespaceRequest request;
    request.set_name(absl::StrCat("n", i));
    Must(Call(stub.get(), &Names::CreateNamespace, request));
  }
  server.process().Signal(SIGTERM);
  const Exit exit = server.process().Wait();
  EXPECT_EQ(exit.code, 0);
  const std::vector<std::string> lines =
      absl::StrSplit(exit.err, '\n', absl::SkipEmpty());
  EXPECT_LT(lines.size(), static_cast<size_t>(kNamespaces));
  for (const std::string& line : lines) {
    EXPECT_TRUE(json::accept(line)) << line;
  }
}

TEST_F(OperationsProcessTest, TheLogSaysWhatLimitsRefuseAndOptionsAsJson) {
  ServerProcess server(
      {"--config", WriteConfig("namespaces:\n  - name: small\n    options:\n"
                               "      max_entries: 1\n      ttl: 90s\n")});
  EXPECT_EQ(server.started()["limits"]["max_watchers"], 10'000);
  const auto names = v1::NamespaceService::NewStub(server.channel());
  Must(Call(names.get(), &Names::CreateNamespace,
            Proto<v1::CreateNamespaceRequest>(
                "name: 'made' options { ttl { seconds: 120 } }")));
  const json made = server.AwaitEvent("namespace_created");
  EXPECT_EQ(made["namespace"], "made");
  EXPECT_EQ(made["options"]["ttl"], "2m");
  EXPECT_EQ(made["options"]["num_buckets"], 101);
  v1::ExecuteRequest request;
  request.set_namespace_("small");
  for (int i = 0; i < 4; ++i) {
    request.add_operations()->mutable_put()->set_key(absl::StrCat("key-", i));
  }
  Must(Call(server.data(), &v1::TimeCacheService::Stub::Execute, request));
  const json refused = server.AwaitEvent("limit_refused");
  EXPECT_EQ(refused["level"], "warn");
  EXPECT_EQ(refused["reason"], "MAX_ENTRIES");
  EXPECT_EQ(refused["namespace"], "small");
  EXPECT_EQ(refused["count"], 3);
  EXPECT_EQ(refused["method"], "timecache.v1.TimeCacheService/Execute");
  EXPECT_THAT(refused.dump(), ::testing::Not(HasSubstr("key-")));
  Must(Call(server.data(), &v1::TimeCacheService::Stub::Execute, request));
  // Those that follow are counted; the end says how many.
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.AwaitEvent("limit_refused")["count"], 3);
}

}  // namespace
}  // namespace timecache::test
