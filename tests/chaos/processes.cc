#include "tests/chaos/processes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "timecache/cluster_types.h"

namespace timecache::test {

namespace {

// Of a control run: with a rule switched off.
const char* Program() {
  return std::getenv("CHAOS_RULE_OFF") != nullptr ? TIMECACHED_UNSAFE
                                                  : TIMECACHED;
}

}  // namespace

int FreePort() {
  static std::mt19937 random{std::random_device{}()};
  for (;;) {
    const int port = std::uniform_int_distribution<>(20'000, 32'000)(random);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool free =
        bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (free) return port;
  }
}

Brokers::Brokers(const std::string& directory, int count,
                 const std::vector<std::string>& links)
    : count_(count) {
  std::vector<std::string> argv = {PYTHON,        BROKERS_PY,
                                   "--count",     absl::StrCat(count),
                                   "--directory", directory};
  for (const std::string& link : links) {
    argv.insert(argv.end(), {"--link", link});
  }
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    std::vector<char*> args;
    for (std::string& each : argv) args.push_back(each.data());
    args.push_back(nullptr);
    execv(args[0], args.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
  said_ = ReadLine();
}

// Its standard input ends, and with it the brokers.
Brokers::~Brokers() {
  close(in_);
  close(out_);
  waitpid(pid_, nullptr, 0);
}

nlohmann::json Brokers::ReadLine() {
  size_t end;
  while ((end = bytes_.find('\n')) == std::string::npos) {
    char buffer[4096];
    const ssize_t got = read(out_, buffer, sizeof(buffer));
    if (got <= 0) {
      ADD_FAILURE() << "the brokers have ended";
      return nlohmann::json::object();
    }
    bytes_.append(buffer, static_cast<size_t>(got));
  }
  const std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return nlohmann::json::parse(line, nullptr, false);
}

void Brokers::Do(const std::string& line) {
  const std::string text = line + "\n";
  EXPECT_EQ(write(in_, text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
  said_ = ReadLine();
}

std::string Brokers::AddressesOf(const std::string& link) const {
  return said_["links"][link];
}

Node::Node(const std::string& directory, const std::string& name,
           const std::string& brokers, int port, const std::string& advertise,
           std::vector<std::string> arguments,
           std::map<std::string, std::string> environment)
    : name_(name),
      address_(absl::StrCat("127.0.0.1:", port)),
      log_(absl::StrCat(directory, "/", name, ".log")),
      arguments_([&] {
        std::vector<std::string> all = {
            // Its standard error is a file, so that nobody has to read it.
            "/bin/sh",
            "-c",
            absl::StrCat("exec \"$0\" \"$@\" 2>>", log_),
            Program(),
            "--listen",
            address_,
            "--advertise",
            advertise,
            "--cluster",
            "test",
            "--node",
            name,
            "--kafka-brokers",
            brokers,
        };
        all.insert(all.end(), arguments.begin(), arguments.end());
        return all;
      }()),
      environment_(std::move(environment)) {
  ClientOptions options;
  options.timeout = absl::Milliseconds(500);
  probe_.emplace(address_, options);
}

void Node::Start() {
  Kill();
  process_ = std::make_unique<ChildProcess>(arguments_, "", environment_);
}

void Node::Kill() {
  if (process_ == nullptr) return;
  process_->Signal(SIGKILL);
  process_->Wait();
  process_ = nullptr;
  paused_ = false;
}

int Node::Stop() {
  process_->Signal(SIGTERM);
  if (std::exchange(paused_, false)) process_->Signal(SIGCONT);
  const Exit exit = process_->Wait();
  process_ = nullptr;
  return exit.code;
}

void Node::Pause() {
  process_->Signal(SIGSTOP);
  paused_ = true;
}

void Node::Resume() {
  process_->Signal(SIGCONT);
  paused_ = false;
}

size_t Node::ServedSlots() {
  if (!runs()) return 0;
  const auto cluster = probe_->GetCluster();
  if (!cluster.ok()) return 0;
  if (!cluster->slots.empty()) {
    return static_cast<size_t>(std::count_if(
        cluster->slots.begin(), cluster->slots.end(),
        [this](const ClusterSlot& slot) { return slot.owner == name_; }));
  }
  const bool owns =
      cluster->owner == name_ &&
      std::any_of(cluster->nodes.begin(), cluster->nodes.end(),
                  [this](const ClusterNode& node) {
                    return node.name == name_ && node.role == NodeRole::kOwner;
                  });
  return owns ? 1 : 0;
}

}  // namespace timecache::test
