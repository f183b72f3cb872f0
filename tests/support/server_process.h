// timecached as a process that serves.

#ifndef TIMECACHED_TESTS_SUPPORT_SERVER_PROCESS_H_
#define TIMECACHED_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/rpc.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::test {

// Started on a free loopback port and ended by its destructor. Not thread-safe.
class ServerProcess {
 public:
  // Waits until the server says that it has started. `arguments` must make it
  // listen on 127.0.0.1 first. `environment` is added to the test's. `wrapper`
  // is a command that is given all of it as arguments, to become the server.
  explicit ServerProcess(
      const std::vector<std::string>& arguments = {"--listen", "127.0.0.1:0"},
      const std::map<std::string, std::string>& environment = {},
      const std::vector<std::string>& wrapper = {})
      : process_(Argv(arguments, wrapper), "", environment) {
    while (started_.value("event", "") != "server_started") {
      const std::string line = process_.ReadErrorLine();
      started_ = nlohmann::json::parse(line, nullptr, false);
      if (!started_.is_object()) {
        ADD_FAILURE() << "not a line of JSON: " << line;
        return;
      }
    }
    const std::string addresses = started_["address"];
    address_ = addresses.substr(0, addresses.find(','));
    grpc::ChannelArguments channel_arguments;
    channel_arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = Connected(grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), channel_arguments));
    data_ = v1::TimeCacheService::NewStub(channel_);
  }

  ChildProcess& process() { return process_; }
  // Reads the log up to this event, and returns its line.
  nlohmann::json AwaitEvent(const std::string& event) {
    for (;;) {
      const std::string text = process_.ReadErrorLine();
      const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
      if (line.is_object() && line.value("event", "") == event) return line;
      if (!line.is_object()) {
        ADD_FAILURE() << "no " << event << " in the log: " << text;
        return nlohmann::json::object();
      }
    }
  }
  // The line that says so.
  const nlohmann::json& started() const { return started_; }
  const std::string& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  v1::TimeCacheService::Stub* data() { return data_.get(); }

 private:
  static std::vector<std::string> Argv(
      const std::vector<std::string>& arguments,
      std::vector<std::string> wrapper) {
    wrapper.insert(wrapper.end(), {TIMECACHED, "--log-format=json"});
    wrapper.insert(wrapper.end(), arguments.begin(), arguments.end());
    return wrapper;
  }

  ChildProcess process_;
  nlohmann::json started_ = nlohmann::json::object();
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TimeCacheService::Stub> data_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_SERVER_PROCESS_H_
