#include "tests/chaos/test_cluster.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

// One for each cluster: it would go on with what another has left.
std::string DirectoryOr(const std::string& otherwise) {
  const char* const kept = std::getenv("TIMECACHED_CHAOS_DIRECTORY");
  if (kept == nullptr) return otherwise;
  static std::atomic<int> clusters{0};
  const std::string directory =
      absl::StrCat(kept, "/", getpid(), ".", ++clusters);
  std::filesystem::create_directories(directory);
  return directory;
}

// Of this thread's and what it starts alone, and gone with them.
bool MountSmallDisk(const std::string& path, int mib) {
  std::filesystem::create_directories(path);
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0,
               absl::StrCat("size=", mib, "m").c_str()) == 0;
}

// The end of it.
std::string ReadLog(const Node& node, std::streamoff bytes_max) {
  std::ifstream log(node.log(), std::ios::ate);
  log.seekg(std::max<std::streamoff>(log.tellg() - bytes_max, 0));
  return {std::istreambuf_iterator<char>(log), {}};
}

}  // namespace

TestCluster::TestCluster(TestClusterOptions options)
    : options_(std::move(options)), directory_(DirectoryOr(temporary_.path())) {
  std::vector<std::string> names;
  if (options_.small_disk_mib > 0) {
    EXPECT_TRUE(MountSmallDisk(DataOf(1), options_.small_disk_mib));
  }
  for (int i = 0; i < options_.nodes; ++i) {
    names.push_back(absl::StrCat("node", i));
  }
  brokers_ = std::make_unique<Brokers>(directory_ + "/brokers",
                                       options_.brokers, names);
  if (!options_.prepare.empty()) brokers_->Do(options_.prepare);
  MakeTopics();
  if (options_.with_topics) {
    options_.with_topics(brokers_->AddressesOf("node0"));
  }
  std::vector<std::string> arguments;
  if (!options_.config.empty()) {
    const std::string path = directory_ + "/config.yaml";
    std::ofstream(path) << options_.config;
    arguments = {"--config", path};
  }
  if (allow_unsafe()) arguments.emplace_back("--cluster-allow-unsafe");
  for (size_t i = 0; i < names.size(); ++i) {
    const int port = FreePort();
    std::string advertise = absl::StrCat("127.0.0.1:", port);
    if (options_.link_nodes) {
      brokers_->Do(absl::StrCat("link ", PeersOf(names[i]), " ", port));
      advertise = brokers_->AddressesOf(PeersOf(names[i]));
    }
    nodes_.push_back(std::make_unique<Node>(
        directory_, names[i], brokers_->AddressesOf(names[i]), port, advertise,
        arguments, ClockOf(i)));
    if (options_.started < 0 || i < static_cast<size_t>(options_.started)) {
      nodes_.back()->Start();
    }
  }
  AwaitOwner();
}

bool TestCluster::MayMount() { return unshare(CLONE_NEWNS) == 0; }

std::string TestCluster::DataOf(int broker) const {
  return absl::StrCat(directory_, "/brokers/", broker, "/data");
}

std::string TestCluster::BrokersAddresses() const {
  return brokers_->AddressesOf("node0");
}

std::vector<std::string> TestCluster::InitArguments() const {
  std::vector<std::string> arguments = {
      TIMECACHED,        "cluster",         "init", "--cluster", "test",
      "--kafka-brokers", BrokersAddresses()};
  if (allow_unsafe()) arguments.emplace_back("--cluster-allow-unsafe");
  if (options_.brokers == 1) {
    arguments.insert(arguments.end(), {"--replication-factor", "1"});
  }
  return arguments;
}

void TestCluster::MakeTopics() const {
  const Exit init = RunToEnd(InitArguments());
  EXPECT_EQ(init.code, 0) << init.err;
}

nlohmann::json TestCluster::Topics() const {
  std::vector<std::string> arguments = InitArguments();
  arguments.emplace_back("--json");
  const Exit init = RunToEnd(arguments);
  EXPECT_EQ(init.code, 0) << init.err;
  return nlohmann::json::parse(init.out, nullptr, false);
}

TestCluster::~TestCluster() {
  nodes_.clear();
  brokers_.reset();
  if (options_.small_disk_mib > 0) umount2(DataOf(1).c_str(), MNT_DETACH);
}

std::map<std::string, std::string> TestCluster::ClockOf(size_t node) const {
  if (node >= options_.clocks.size()) return {};
  const std::string path = absl::StrCat(directory_, "/clock", node);
  const int64_t seconds = absl::ToInt64Seconds(options_.clocks[node]);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(&seconds), sizeof(seconds));
  return {{"LD_PRELOAD", STEPPED_CLOCK_LIBRARY}, {"STEPPED_CLOCK", path}};
}

std::string TestCluster::addresses(size_t first) const {
  std::string all;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = *nodes_[(first + i) % nodes_.size()];
    absl::StrAppend(&all, all.empty() ? "" : ",", node.address());
  }
  return all;
}

Client TestCluster::Caller(const std::string& ns, size_t first) const {
  ClientOptions options;
  options.timeout = kPatience;
  options.retry.max_attempts = kAttempts;
  return Client(addresses(first), options).In(ns);
}

Client TestCluster::ImpatientCaller(const std::string& ns,
                                    absl::Duration impatience,
                                    size_t first) const {
  ClientOptions options;
  options.timeout = impatience;
  options.retry.max_attempts = 1;
  return Client(addresses(first), options).In(ns);
}

Client TestCluster::CallerOfOne(const std::string& ns, size_t node,
                                absl::Duration impatience) const {
  ClientOptions options;
  options.timeout = impatience;
  options.retry.max_attempts = 1;
  return Client(nodes_[node]->address(), options).In(ns);
}

void TestCluster::Create(const std::string& name,
                         const NamespaceOptions& options) const {
  const Client client = Caller("default");
  const absl::Status created =
      CreateUntilOk([&] { return client.CreateNamespace(name, options); });
  EXPECT_TRUE(created.ok()) << created;
}

Node* TestCluster::Owner() {
  Node* owner = nullptr;
  size_t most = 0;
  for (const auto& node : nodes_) {
    if (const size_t slots = node->ServedSlots(); slots > most) {
      owner = node.get();
      most = slots;
    }
  }
  return owner;
}

Node* TestCluster::AwaitOwner() {
  Node* owner = nullptr;
  EXPECT_TRUE(AwaitCluster([&] { return (owner = Owner()) != nullptr; }));
  return owner;
}

std::vector<Node*> TestCluster::Standbys() {
  std::vector<Node*> standbys;
  const Node* const owner = AwaitOwner();
  for (const auto& node : nodes_) {
    if (node.get() != owner) standbys.push_back(node.get());
  }
  return standbys;
}

Node* TestCluster::Standby(Dice& dice) {
  const std::vector<Node*> standbys = Standbys();
  return standbys[dice.Index(standbys.size())];
}

nlohmann::json TestCluster::Status(const std::string& addresses) {
  const Exit status = RunToEnd(
      {TIMECACHECTL, "--address", addresses, "--json", "cluster", "status"});
  const nlohmann::json cluster =
      nlohmann::json::parse(status.out, nullptr, false);
  return cluster.is_object() ? cluster : nlohmann::json();
}

bool TestCluster::IsWhole() const {
  const nlohmann::json cluster = Status(addresses());
  if (cluster.is_null()) return false;
  std::set<std::string> caught_up;
  for (const auto& node : cluster["nodes"]) {
    if (node.value("role", "") != "gone" && node.value("caught_up", false)) {
      caught_up.insert(node.value("name", ""));
    }
  }
  for (const auto& slot : cluster["slots"]) {
    if (slot["owner"].is_null() || !slot["moves_to"].is_null()) return false;
    if (caught_up.size() > 1 && !slot.value("standby_ready", false)) {
      return false;
    }
  }
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return !node->runs() || caught_up.count(node->name()) > 0;
  });
}

void TestCluster::AwaitWhole() const {
  EXPECT_TRUE(AwaitCluster([&] { return IsWhole(); }));
}

bool TestCluster::HasLogged(const Node& node, const std::string& text) {
  return absl::StrContains(ReadLog(node, 1 << 20), text);
}

// An error that ends the program is a line without a time. Threads that end
// meanwhile may still write others.
std::string TestCluster::WhyEnded(const Node& node) {
  if (!node.has_ended()) return "";
  const std::string log = absl::StrCat("\n", ReadLog(node, 8192));
  const size_t begin = log.rfind("\ntimecached: ");
  if (begin == std::string::npos) {
    return absl::StrCat(node.name(), " has ended without a reason:", log);
  }
  return absl::StrCat(node.name(), " has ended: ",
                      log.substr(begin + 1, log.find('\n', begin + 1) - begin));
}

std::string TestCluster::WhyNodesEnded() const {
  std::string all;
  for (const auto& node : nodes_) absl::StrAppend(&all, WhyEnded(*node));
  return all;
}

std::string TestCluster::StartEndedNodes() {
  std::string why = WhyNodesEnded();
  for (const auto& node : nodes_) {
    if (node->has_ended()) node->Start();
  }
  return why;
}

}  // namespace timecache::test
