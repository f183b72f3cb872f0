// Members of consumer groups in a test, and what is settled for them.

#ifndef TIMECACHED_TESTS_SUPPORT_GROUP_CLIENT_H_
#define TIMECACHED_TESTS_SUPPORT_GROUP_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {

// Works with the group "g" of a TestServer's namespaces. Not thread-safe.
class GroupClient {
 public:
  explicit GroupClient(TestServer* server) : server_(server) {}

  // `options` is a GroupOptions as text.
  void Create(const std::string& options = "",
              const std::string& name = "default");

  // Starts a member; `more` is the rest of its request as text.
  std::unique_ptr<WatchReader> Start(const std::string& more = "",
                                     const std::string& name = "default");
  // The same, and reads its first message, which must have no event: it has
  // joined.
  std::unique_ptr<WatchReader> Join(const std::string& more = "",
                                    const std::string& name = "default");

  // Reads on until exactly `count` events have come.
  static std::vector<v1::ExpiredEvent> Take(WatchReader* member, int count);
  static v1::ExpiredEvent TakeOne(WatchReader* member) {
    const auto events = Take(member, 1);
    return events.empty() ? v1::ExpiredEvent() : events[0];
  }

  // Settles one event, by a connection that no member has; `how` is the rest of
  // the Settlement as text.
  v1::SettleResult Settle(const v1::ExpiredEvent& event,
                          const std::string& how);
  // They must be unsettled.
  void Ack(const std::vector<v1::ExpiredEvent>& events);
  void Ack(const v1::ExpiredEvent& event) { Ack(std::vector{event}); }

  // With its statistics.
  v1::Group Describe(const std::string& name = "default");
  v1::GroupStatistics Statistics(const std::string& name = "default") {
    return Describe(name).statistics();
  }
  // Asks until the group has `count` members: the server hears of a
  // cancellation a little after the client.
  void AwaitMembers(uint64_t count);

 private:
  TestServer* const server_;
  const std::unique_ptr<v1::TimeCacheService::Stub> other_ =
      v1::TimeCacheService::NewStub(server_->NewChannel());
};

// The error of a result, as a call would have ended with it.
grpc::Status ErrorOf(const v1::SettleResult& result);

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_GROUP_CLIENT_H_
