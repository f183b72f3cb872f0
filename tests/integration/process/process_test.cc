// timecached as a process: how it starts, how it refuses to, how it ends.
#include "tests/support/process.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/rpc.h"
#include "tests/support/server_process.h"
#include "tests/support/watch_reader.h"
#include "timecache/v1/groups.grpc.pb.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// One line that says what is wrong, and nothing else.
void ExpectRefused(const Exit& exit, int code, const std::string& part) {
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(exit.code, code);
  EXPECT_EQ(exit.out, "");
  EXPECT_THAT(exit.err, AllOf(StartsWith("timecached: "), HasSubstr(part)));
  EXPECT_EQ(std::count(exit.err.begin(), exit.err.end(), '\n'), 1) << exit.err;
}

class ProcessTest : public ::testing::Test {
 protected:
  std::string WriteConfig(const std::string& yaml) {
    const std::string path = directory_.path() + "/timecached.yaml";
    std::ofstream(path) << yaml;
    return path;
  }
  Exit RunWithConfig(const std::string& yaml) {
    return RunToEnd(
        {TIMECACHED, "--listen", "127.0.0.1:0", "--config", WriteConfig(yaml)});
  }

  const server::TemporaryDirectory directory_;
};

TEST_F(ProcessTest, LogsItsStartAsOneJsonLine) {
  ServerProcess server;
  const json& started = server.started();
  EXPECT_EQ(started["level"], "info");
  EXPECT_EQ(started["namespaces"], 1);
  EXPECT_EQ(started["virtual_clock"], false);
  EXPECT_EQ(started["grace_period_s"], 10);
  EXPECT_THAT(started["version"].get<std::string>(),
              MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
  EXPECT_THAT(server.address(), MatchesRegex("127.0.0.1:[1-9][0-9]*"));
  EXPECT_EQ(HealthOf(server.channel()), 1);
}

TEST_F(ProcessTest, EndsWithZeroOnSigtermAndSigint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServerProcess server;
    server.process().Signal(signal);
    const Exit exit = server.process().Wait();
    EXPECT_EQ(exit.code, 0) << exit.err;
    EXPECT_EQ(exit.signal, 0);
    const std::vector<std::string> lines =
        absl::StrSplit(exit.err, '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), 2u) << exit.err;
    EXPECT_EQ(json::parse(lines[0])["event"], "drain_started");
    EXPECT_EQ(json::parse(lines[1])["event"], "server_stopped");
    EXPECT_EQ(json::parse(lines[1])["calls_cancelled"], false);
  }
}

TEST_F(ProcessTest, AnOpenWatchEndsWellAfterItsLastWatermark) {
  ServerProcess server;
  WatchReader reader(server.data(), "default");
  ASSERT_TRUE(reader.Next());
  const int64_t before_us = absl::ToUnixMicros(absl::Now());
  server.process().Signal(SIGTERM);
  int64_t watermark_us = 0;
  while (const auto message = reader.Next()) {
    watermark_us = ToUs(message->watermark());
  }
  const grpc::Status status = reader.Drain();
  EXPECT_TRUE(status.ok()) << status.error_message();
  // gRPC ends a connection once its client has answered a ping, and a client of
  // the synchronous API answers while it is in a call.
  server.channel()->WaitForStateChange(
      GRPC_CHANNEL_READY, std::chrono::system_clock::now() + kCallTimeout);
  // The two clocks are read in two processes.
  EXPECT_GE(watermark_us, before_us - 1'000'000);
  EXPECT_EQ(server.process().Wait().code, 0);
}

TEST_F(ProcessTest, TellsDeathsAndHeartbeatsOnTheRealClock) {
  ServerProcess server;
  const auto namespaces = v1::NamespaceService::NewStub(server.channel());
  Must(Call(namespaces.get(), &v1::NamespaceService::Stub::CreateNamespace,
            Proto<v1::CreateNamespaceRequest>(
                "name: 'quick' options { ttl { nanos: 50000000 } "
                "num_buckets: 6 }")));
  WatchReader reader(server.data(),
                     Proto<v1::WatchExpiredRequest>(
                         "namespaces: 'quick' heartbeat_interval { nanos: "
                         "10000000 }"));
  // The first message, and then heartbeats alone.
  int64_t watermark_us = 0;
  for (int i = 0; i < 4; ++i) {
    const auto message = reader.Next();
    ASSERT_TRUE(message.has_value());
    EXPECT_EQ(message->events_size(), 0);
    EXPECT_GT(ToUs(message->watermark()), watermark_us);
    watermark_us = ToUs(message->watermark());
  }
  Must(Call(server.data(), &v1::TimeCacheService::Stub::Put,
            Proto<v1::PutRequest>("namespace: 'quick' key: 'a' value: '1'")));
  while (reader.events() == 0) {
    const auto message = reader.Next();
    ASSERT_TRUE(message.has_value());
    for (const auto& event : message->events()) {
      EXPECT_EQ(event.key(), "a");
      EXPECT_GE(ToUs(event.death_time()), ToUs(event.deadline()));
      EXPECT_LT(ToUs(event.death_time()), ToUs(event.deadline()) + 10'000);
      EXPECT_GE(ToUs(event.delivered_at()), ToUs(event.death_time()));
    }
  }
}

TEST_F(ProcessTest, ServesWhatItsConfigurationSays) {
  const std::string socket = directory_.path() + "/socket";
  ServerProcess server(
      {"--config", WriteConfig(absl::StrCat(
                       "listeners:\n  - address: 127.0.0.1:0\n"
                       "  - address: unix:",
                       socket,
                       "\nnamespaces:\n  - name: sessions\n    options:\n"
                       "      ttl: 30m\n      num_buckets: 4\n"))});
  const auto channel =
      grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials());
  const auto namespaces = v1::NamespaceService::NewStub(channel);
  const auto list =
      Must(Call(namespaces.get(), &v1::NamespaceService::Stub::ListNamespaces,
                v1::ListNamespacesRequest()));
  ASSERT_EQ(list.namespaces_size(), 1);
  EXPECT_EQ(list.namespaces(0).name(), "sessions");
  EXPECT_EQ(list.namespaces(0).bucket_width().seconds(), 600);
}

TEST_F(ProcessTest, APortInUseIsOneLineAndExitCodeOne) {
  ServerProcess server;
  ExpectRefused(RunToEnd({TIMECACHED, "--listen", server.address()}), 1,
                absl::StrCat("cannot listen on ", server.address(),
                             ": Address already in use"));
  EXPECT_EQ(HealthOf(server.channel()), 1);
}

TEST_F(ProcessTest, ASocketPathThatCannotBeMadeIsNamed) {
  const std::string path =
      "unix:" + directory_.path() + "/no/such/directory/socket";
  ExpectRefused(RunToEnd({TIMECACHED, "--listen", path}), 1,
                "cannot listen on " + path);
}

TEST_F(ProcessTest, AWrongFlagIsExitCodeTwo) {
  ExpectRefused(RunToEnd({TIMECACHED, "--lisen", "127.0.0.1:0"}), 2, "--lisen");
  ExpectRefused(RunToEnd({TIMECACHED, "--listen", "127.0.0.1:70000"}), 2,
                "70000");
  ExpectRefused(RunToEnd({TIMECACHED, "--log-format", "xml"}), 2, "text, json");
}

TEST_F(ProcessTest, AWrongFieldIsNamedWithFileAndLine) {
  ExpectRefused(
      RunWithConfig("limits:\n  max_watchers: 5\n  max_namespace: 5\n"), 1,
      directory_.path() + "/timecached.yaml:3: limits.max_namespace");
  ExpectRefused(RunWithConfig("limits:\n  max_watchers: many\n"), 1,
                directory_.path() + "/timecached.yaml:2: limits.max_watchers");
}

// The process that listens on a unix socket, to which it connects.
pid_t ListenerOf(const std::string& path) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof(to.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  ucred peer = {};
  socklen_t size = sizeof(peer);
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
  close(fd);
  return peer.pid;
}

// A connection with the number of standard error would get log lines.
TEST_F(ProcessTest, StandardFilesThatAreClosedAreNotUsedForOthers) {
  const std::string path = directory_.path() + "/socket";
  ChildProcess process({"/bin/sh", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-",
                        TIMECACHED, "--listen", "unix:" + path});
  EXPECT_EQ(HealthOf(Connected(grpc::CreateChannel(
                "unix:" + path, grpc::InsecureChannelCredentials()))),
            1);
  const std::string proc = absl::StrCat("/proc/", ListenerOf(path), "/fd/");
  for (const char* fd : {"0", "1", "2"}) {
    EXPECT_EQ(std::filesystem::read_symlink(proc + fd), "/dev/null") << fd;
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait().code, 0);
}

TEST_F(ProcessTest, ASecondSignalDoesNotWaitForTheGracePeriod) {
  ServerProcess server(
      {"--config", WriteConfig("grace_period: 1h\n"
                               "listeners:\n  - address: 127.0.0.1:0\n")});
  const std::string value(1 << 20, 'v');
  for (int i = 0; i < 20; ++i) {
    v1::PutRequest request;
    request.set_namespace_("default");
    request.set_key(absl::StrCat(i));
    request.set_value(value);
    Must(Call(server.data(), &v1::TimeCacheService::Stub::Put, request));
  }
  // A scan that nobody reads on holds the drain.
  grpc::ClientContext context;
  SetDeadline(&context);
  auto scan = server.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(scan->Read(&page));
  server.process().Signal(SIGTERM);
  EXPECT_THAT(server.process().ReadErrorLine(), HasSubstr("drain_started"));
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait().signal, SIGTERM);
  context.TryCancel();
  while (scan->Read(&page)) {
  }
  EXPECT_FALSE(scan->Finish().ok());
}

TEST_F(ProcessTest, TheVirtualClockIsServedOnlyWhenAskedFor) {
  ServerProcess real;
  ServerProcess standing({"--virtual-clock", "--listen", "127.0.0.1:0"});
  const std::string now = "/timecache.testing.v1.VirtualClockService/Now";
  EXPECT_EQ(CallRaw(real.channel(), now, ""), "");
  // NowResponse{now{}}: 1970-01-01T00:00:00Z.
  EXPECT_EQ(CallRaw(standing.channel(), now, ""), std::string("\x0a\x00", 2));
  EXPECT_EQ(standing.started()["virtual_clock"], true);
}

// gRPC's own listener takes no connection any more after this.

}  // namespace
}  // namespace timecache::test
