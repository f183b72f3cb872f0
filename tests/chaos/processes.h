// The processes of a cluster on this machine: brokers and nodes.

#ifndef TIMECACHED_TESTS_CHAOS_PROCESSES_H_
#define TIMECACHED_TESTS_CHAOS_PROCESSES_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "timecache/client.h"

namespace timecache::test {

// Kafka's brokers, as brokers.py runs them. Not thread-safe.
class Brokers {
 public:
  // Waits until they answer. A link for each name: see brokers.py.
  Brokers(const std::string& directory, int count,
          const std::vector<std::string>& links);
  ~Brokers();
  Brokers(const Brokers&) = delete;
  Brokers& operator=(const Brokers&) = delete;

  // "kill 1", "cut node0": a line for brokers.py, done when it returns.
  void Do(const std::string& line);
  // What a node is to be given that reaches them through this link.
  std::string AddressesOf(const std::string& link) const;
  int count() const { return count_; }

 private:
  nlohmann::json ReadLine();

  const int count_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string bytes_;
  nlohmann::json said_;
};

// timecached as a node of the cluster "test", over all its lives; its log is in
// a file. Not thread-safe.
class Node {
 public:
  // `port`: where it listens. `advertise`: how other nodes reach it. `environment`: see
  // ChildProcess.
  Node(const std::string& directory, const std::string& name,
       const std::string& brokers, int port, const std::string& advertise,
       std::vector<std::string> arguments,
       std::map<std::string, std::string> environment = {});
  ~Node() { Kill(); }

  // Does not wait until it serves.
  void Start();
  void Kill();
  // SIGTERM, and waits for its end: the exit code.
  int Stop();
  void Pause();
  void Resume();

  const std::string& name() const { return name_; }
  const std::string& address() const { return address_; }
  // Neither killed nor paused.
  bool runs() const { return process_ != nullptr && !paused_; }
  // Whether it has ended by itself.
  bool has_ended() const { return process_ != nullptr && process_->HasEnded(); }
  // As it says itself: how many slots it owns; where one node owns all, 1 or 0.
  size_t ServedSlots();
  const std::string& log() const { return log_; }

 private:
  const std::string name_;
  const std::string address_;
  const std::string log_;
  const std::vector<std::string> arguments_;
  const std::map<std::string, std::string> environment_;
  std::optional<Client> probe_;
  std::unique_ptr<ChildProcess> process_;
  bool paused_ = false;
};

// A port of the loopback address that nobody has now, nor gets for connecting.
int FreePort();

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CHAOS_PROCESSES_H_
