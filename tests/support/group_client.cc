#include "tests/support/group_client.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/rpc.h"

namespace timecache::test {

void GroupClient::Create(const std::string& options, const std::string& name) {
  v1::CreateGroupRequest request;
  request.set_namespace_(name);
  request.set_name("g");
  *request.mutable_options() = Proto<v1::GroupOptions>(options);
  Must(Call(server_->groups(), &v1::GroupService::Stub::CreateGroup, request));
}

std::unique_ptr<WatchReader> GroupClient::Start(const std::string& more,
                                                const std::string& name) {
  return std::make_unique<WatchReader>(
      server_->data(), Proto<v1::ConsumeExpiredRequest>(absl::StrCat(
                           "namespaces: '", name, "' group: 'g' ", more)));
}

std::unique_ptr<WatchReader> GroupClient::Join(const std::string& more,
                                               const std::string& name) {
  auto member = Start(more, name);
  const auto first = member->Next();
  EXPECT_TRUE(first.has_value());
  if (first.has_value()) {
    EXPECT_EQ(first->events_size(), 0);
  }
  return member;
}

std::vector<v1::ExpiredEvent> GroupClient::Take(WatchReader* member,
                                                int count) {
  std::vector<v1::ExpiredEvent> events;
  while (static_cast<int>(events.size()) < count) {
    auto message = member->Next();
    if (!message.has_value()) {
      const grpc::Status status = member->Drain();
      ADD_FAILURE() << "the stream ended after " << events.size()
                    << " events: " << status.error_message();
      return events;
    }
    for (v1::ExpiredEvent& event : *message->mutable_events()) {
      events.push_back(std::move(event));
    }
  }
  EXPECT_EQ(events.size(), static_cast<size_t>(count));
  return events;
}

v1::SettleResult GroupClient::Settle(const v1::ExpiredEvent& event,
                                     const std::string& how) {
  v1::SettleExpiredRequest request;
  request.set_namespace_(event.namespace_());
  request.set_group("g");
  v1::Settlement* const settlement = request.add_settlements();
  *settlement = Proto<v1::Settlement>(how);
  settlement->set_delivery_token(event.delivery_token());
  const auto response = Must(
      Call(other_.get(), &v1::TimeCacheService::Stub::SettleExpired, request));
  EXPECT_EQ(response.results_size(), 1);
  return response.results_size() == 1 ? response.results(0)
                                      : v1::SettleResult();
}

void GroupClient::Ack(const std::vector<v1::ExpiredEvent>& events) {
  ASSERT_FALSE(events.empty());
  v1::SettleExpiredRequest request;
  request.set_namespace_(events[0].namespace_());
  request.set_group("g");
  for (const v1::ExpiredEvent& event : events) {
    v1::Settlement* const settlement = request.add_settlements();
    settlement->set_delivery_token(event.delivery_token());
    settlement->mutable_ack();
  }
  const auto response = Must(
      Call(other_.get(), &v1::TimeCacheService::Stub::SettleExpired, request));
  ASSERT_EQ(response.results_size(), request.settlements_size());
  for (const v1::SettleResult& result : response.results()) {
    EXPECT_FALSE(result.has_error()) << result.error().message();
  }
}

v1::Group GroupClient::Describe(const std::string& name) {
  v1::ListGroupsRequest request;
  request.set_namespace_(name);
  request.set_include_statistics(true);
  const auto response = Must(
      Call(server_->groups(), &v1::GroupService::Stub::ListGroups, request));
  EXPECT_EQ(response.groups_size(), 1);
  return response.groups_size() == 1 ? response.groups(0) : v1::Group();
}

void GroupClient::AwaitMembers(uint64_t count) {
  EXPECT_TRUE(Await([&] { return Statistics().members() == count; }))
      << Statistics().members() << " members";
}

grpc::Status ErrorOf(const v1::SettleResult& result) {
  return grpc::Status(static_cast<grpc::StatusCode>(result.error().code()),
                      result.error().message(),
                      result.error().SerializeAsString());
}

}  // namespace timecache::test
