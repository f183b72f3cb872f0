#include "server/rpc/call/call.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/test/server_context_test_spouse.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/rpc/call/refusal_count.h"
#include "timecache/peer/v1/peer.pb.h"
#include "timecache/testing/v1/virtual_clock.pb.h"
#include "timecache/v1/data.pb.h"
#include "timecache/v1/groups.pb.h"
#include "timecache/v1/namespaces.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class FakeCaller final : public Caller {
 public:
  FakeCaller(std::string name, std::map<std::string, Verbs> verbs)
      : name_(std::move(name)), verbs_(std::move(verbs)) {}
  const std::string& name() const override { return name_; }
  Verbs VerbsIn(absl::string_view name) const override {
    const auto it = verbs_.find(std::string(name));
    return it == verbs_.end() ? Verbs() : it->second;
  }
  bool MayAnything() const override { return !verbs_.empty(); }
  std::vector<PatternVerbs> Permissions() const override {
    std::vector<PatternVerbs> permissions;
    for (const auto& [name, verbs] : verbs_) {
      permissions.push_back({name, verbs});
    }
    return permissions;
  }

 private:
  const std::string name_;
  const std::map<std::string, Verbs> verbs_;
};

// Knows whoever has an authorization that was set.
class FakeAccess final : public Access {
 public:
  void Set(const std::string& authorization,
           std::map<std::string, Verbs> verbs) {
    callers_[authorization] =
        std::make_shared<FakeCaller>(authorization, std::move(verbs));
    ++generation_;
  }
  void Forget(const std::string& authorization) {
    callers_.erase(authorization);
    ++generation_;
  }

  absl::StatusOr<std::shared_ptr<const Caller>> Authenticate(
      const Credentials& credentials) const override {
    ++authentications;
    const auto it =
        callers_.find(std::string(credentials.authorizations.at(0)));
    if (it != callers_.end()) return it->second;
    return ErrorWithReason(absl::StatusCode::kUnauthenticated,
                           Reason::kUnknownToken, "who?");
  }
  std::shared_ptr<const Caller> FindPrincipal(
      absl::string_view name) const override {
    for (const auto& [token, caller] : callers_) {
      if (caller->name() == name) return caller;
    }
    return nullptr;
  }
  uint64_t generation() const override { return generation_; }
  void SetListener(std::function<void()> /*on_change*/) override {}

  mutable int authentications = 0;

 private:
  std::map<std::string, std::shared_ptr<const Caller>> callers_;
  uint64_t generation_ = 1;
};

// Writes down what it is told.
class Recorder final : public CallObserver {
 public:
  void OnStarted(const Method& method) override {
    seen.push_back(absl::StrCat("started ", method.name));
  }
  void OnHandled(const CallRecord& record) override {
    EXPECT_GE(record.took_us, 0);
    seen.push_back(absl::StrCat(
        "handled ", record.method.name, " ", static_cast<int>(record.code), " ",
        record.details.Principal(), " ", record.details.Namespace()));
  }
  void OnDenied(const CallDenial& denial) override {
    seen.push_back(absl::StrCat("denied ", denial.method.name, " ",
                                ReasonNameOf(denial.status), " ", denial.name,
                                " ", denial.verbs.ToString()));
  }
  void OnRefused(const CallRefusal& refusal) override {
    refused += refusal.operations;
    seen.push_back(absl::StrCat(
        "refused ", refusal.method.name, " ", ReasonNameOf(refusal.status), " ",
        refusal.operations, " ", refusal.details.Namespace()));
  }
  void OnReceived(const Method& /*method*/) override {
    seen.push_back("received");
  }
  void OnSent(const Method& /*method*/) override { seen.push_back("sent"); }

  std::vector<std::string> seen;
  // Operations, by whatever refused them.
  uint64_t refused = 0;
};

class CallTest : public ::testing::Test {
 protected:
  CallTest() {
    access_.Set("basket",
                {{"baskets", {config::v1::VERB_READ, config::v1::VERB_WRITE}}});
    access_.Set("new", {});
  }

  void Say(const std::string& key, const std::string& value) {
    spouse_.AddClientMetadata(key, value);
  }
  std::string TrailingRequestId() const {
    const auto all = spouse_.GetTrailingMetadata();
    const auto it = all.find("x-request-id");
    return it == all.end() ? "" : it->second;
  }

  FakeAccess access_;
  Recorder recorder_;
  const CallGate open_{nullptr, {&recorder_}};
  const CallGate guarded_{&access_, {&recorder_}};
  grpc::ServerContext context_;
  grpc::testing::ServerContextTestSpouse spouse_{&context_};
};

TEST_F(CallTest, WithoutRulesEverybodyMayDoEverything) {
  Call call(open_, methods::kPut, &context_);
  EXPECT_TRUE(call.Identify().ok());
  EXPECT_TRUE(call.Authorize(config::v1::VERB_ADMIN, kWholeServer).ok());
  EXPECT_TRUE(call.AuthorizeAnywhere().ok());
  EXPECT_EQ(*call.VerbsIn("baskets"), Verbs::All());
  EXPECT_TRUE(call.MaySee("baskets"));
  EXPECT_TRUE(call.May(Verbs::All(), kWholeServer));
  EXPECT_FALSE(call.stale());
  EXPECT_TRUE(call.Renew().ok());
  EXPECT_EQ(call.Principal(), "anonymous");
  EXPECT_TRUE(call.End(absl::OkStatus()).ok());
  EXPECT_THAT(recorder_.seen,
              ElementsAre("started Put", "handled Put 0 anonymous baskets"));
  EXPECT_EQ(TrailingRequestId(), "");
}

TEST_F(CallTest, ACallerMayWhatTheRulesSay) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kExecute, &context_);
  EXPECT_TRUE(call.Authorize(config::v1::VERB_READ, "baskets").ok());
  EXPECT_TRUE(call.Authorize(Verbs(), "baskets").ok());
  EXPECT_TRUE(call.AuthorizeAnywhere().ok());
  EXPECT_EQ(*call.VerbsIn("baskets"),
            Verbs({config::v1::VERB_READ, config::v1::VERB_WRITE}));
  EXPECT_TRUE(call.MaySee("baskets"));
  EXPECT_FALSE(call.MaySee("orders"));
  EXPECT_TRUE(call.May(config::v1::VERB_READ, "baskets"));
  EXPECT_FALSE(
      call.May({config::v1::VERB_READ, config::v1::VERB_ADMIN}, "baskets"));
  EXPECT_FALSE(call.May(config::v1::VERB_READ, kWholeServer));
  EXPECT_TRUE(call.End(absl::OkStatus()).ok());
  // What is only asked is not told.
  EXPECT_THAT(recorder_.seen, ElementsAre("started Execute",
                                          "handled Execute 0 basket baskets"));
  // Once, whatever is asked.
  EXPECT_EQ(access_.authentications, 1);
}

// As CreateNamespace, which asks about the dead letters' namespace, too.
TEST_F(CallTest, IsAboutTheNamespaceThatItAuthorizedFirst) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kCreateNamespace, &context_);
  EXPECT_TRUE(call.Authorize(config::v1::VERB_READ, "baskets").ok());
  EXPECT_FALSE(call.AuthorizeAlso(config::v1::VERB_WRITE, "orders").ok());
  EXPECT_TRUE(call.AuthorizeAlso(config::v1::VERB_WRITE, "baskets").ok());
  EXPECT_EQ(call.Namespace(), "baskets");
  EXPECT_TRUE(call.End(absl::OkStatus()).ok());
  EXPECT_THAT(recorder_.seen,
              ElementsAre("started CreateNamespace",
                          "denied CreateNamespace ACCESS_DENIED orders write",
                          "handled CreateNamespace 0 basket baskets"));
}

TEST_F(CallTest, ADenialSaysWhoWhereAndWhatLacks) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kWatchExpired, &context_);
  const absl::Status denied = call.Authorize(
      {config::v1::VERB_READ, config::v1::VERB_WATCH}, "baskets");
  EXPECT_EQ(denied.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(denied), Reason::kAccessDenied);
  EXPECT_THAT(MetadataOf(denied), ElementsAre(std::pair("namespace", "baskets"),
                                              std::pair("principal", "basket"),
                                              std::pair("verb", "watch")));
  EXPECT_EQ(call.VerbsIn("orders").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(call.End(denied).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(
      recorder_.seen,
      ElementsAre("started WatchExpired",
                  "denied WatchExpired ACCESS_DENIED baskets read, watch",
                  "denied WatchExpired ACCESS_DENIED orders ",
                  "handled WatchExpired 7 basket orders"));
  EXPECT_THAT(TrailingRequestId(), Not(IsEmpty()));
}

TEST_F(CallTest, APrincipalWithoutRulesMayNothing) {
  Say("authorization", "new");
  Call call(guarded_, methods::kGetServer, &context_);
  EXPECT_TRUE(call.Identify().ok());
  EXPECT_EQ(call.AuthorizeAnywhere().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(call.MaySee("baskets"));
  call.End(absl::OkStatus());
}

TEST_F(CallTest, WhoIsNotKnownMayNothing) {
  Say("authorization", "stranger");
  Call call(guarded_, methods::kGet, &context_);
  for (const absl::Status& status :
       {call.Identify(), call.Authorize(Verbs(), "baskets"),
        call.VerbsIn("baskets").status(), call.AuthorizeAnywhere(),
        call.Renew()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(ReasonOf(status), Reason::kUnknownToken);
  }
  EXPECT_FALSE(call.MaySee("baskets"));
  EXPECT_EQ(call.Principal(), "");
  call.End(absl::OkStatus());
}

TEST_F(CallTest, AStreamFollowsTheRules) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kPipeline, &context_);
  EXPECT_FALSE(call.stale());
  access_.Set("basket", {{"baskets", config::v1::VERB_READ}});
  EXPECT_TRUE(call.stale());
  // Until it looks.
  EXPECT_TRUE(call.Authorize(config::v1::VERB_WRITE, "baskets").ok());
  EXPECT_TRUE(call.Renew().ok());
  EXPECT_FALSE(call.stale());
  EXPECT_FALSE(call.Authorize(config::v1::VERB_WRITE, "baskets").ok());
  access_.Forget("basket");
  EXPECT_EQ(call.Renew().code(), absl::StatusCode::kUnauthenticated);
  call.CountReceived();
  call.CountSent();
  EXPECT_THAT(recorder_.seen, ::testing::IsSupersetOf({"received", "sent"}));
  call.End(absl::OkStatus());
}

TEST_F(CallTest, ANodeThatDoesNotServeTellsKnownCallersOnly) {
  absl::Status service = ErrorWithReason(absl::StatusCode::kUnavailable,
                                         Reason::kNotOwner, "not the owner");
  CallGate node(&access_, {}, nullptr, nullptr, [&] { return service; });
  {
    grpc::ServerContext context;
    // Has the metadata.
    grpc::testing::ServerContextTestSpouse spouse(&context);
    spouse.AddClientMetadata("authorization", "stranger");
    Call call(node, methods::kGet, &context);
    EXPECT_EQ(call.Identify().code(), absl::StatusCode::kUnauthenticated);
    call.End(absl::OkStatus());
  }
  Say("authorization", "basket");
  {
    Call call(node, methods::kGetServer, &context_);
    EXPECT_TRUE(call.AuthorizeAnywhere().ok());
    call.End(absl::OkStatus());
  }
  Call call(node, methods::kGet, &context_);
  for (const absl::Status& status :
       {call.Identify(), call.Authorize(Verbs(), "baskets"),
        call.BeginRequest(1), call.VerbsIn("baskets").status()}) {
    EXPECT_EQ(ReasonOf(status), Reason::kNotOwner);
  }
  EXPECT_EQ(call.CheckService(), service);
  node.Close();
  for (const auto& [method, reason] :
       {std::pair(methods::kGet, Reason::kNotOwner),
        std::pair(methods::kGetServer, Reason::kDraining)}) {
    Call late(node, method, &context_);
    EXPECT_EQ(ReasonOf(late.Identify()), reason);
    late.End(absl::OkStatus());
  }
  service = absl::OkStatus();
  EXPECT_TRUE(call.CheckService().ok());
  call.End(absl::OkStatus());
}

TEST_F(CallTest, ANodeThatStopsAfterItsServiceIsNotDraining) {
  absl::Status service = ErrorWithReason(absl::StatusCode::kUnavailable,
                                         Reason::kNotOwner, "not the owner");
  CallGate node(nullptr, {}, nullptr, nullptr, [&] { return service; });
  node.Close();
  {
    Call call(node, methods::kPut, &context_);
    EXPECT_EQ(ReasonOf(call.Identify()), Reason::kNotOwner);
    call.End(absl::OkStatus());
  }
  service = absl::OkStatus();
  Call call(node, methods::kPut, &context_);
  EXPECT_EQ(ReasonOf(call.Identify()), Reason::kDraining);
  call.End(absl::OkStatus());
}

TEST_F(CallTest, AHandlerThatForgetsToAskFails) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kGet, &context_);
  EXPECT_EQ(call.End(absl::OkStatus()).error_code(),
            grpc::StatusCode::INTERNAL);
}

TEST_F(CallTest, ACallThatNobodyEndedIsCounted) {
  { Call call(open_, methods::kGet, &context_); }
  EXPECT_THAT(recorder_.seen,
              ElementsAre("started Get", "handled Get 2 anonymous "));
}

TEST_F(CallTest, ARequestIdIsTheClientsOrMade) {
  {
    Say("x-request-id", "mine-7");
    Call call(open_, methods::kGet, &context_);
    EXPECT_EQ(call.RequestId(), "mine-7");
    call.End(absl::NotFoundError("none"));
    EXPECT_EQ(TrailingRequestId(), "mine-7");
  }
  std::set<std::string> made;
  constexpr size_t kCalls = 100;
  for (size_t i = 0; i < kCalls; ++i) {
    grpc::ServerContext context;
    grpc::testing::ServerContextTestSpouse spouse(&context);
    spouse.AddClientMetadata("x-request-id", i % 2 == 0 ? "" : "a\nb");
    Call call(open_, methods::kGet, &context);
    // The same each time.
    EXPECT_EQ(call.RequestId(), call.RequestId());
    EXPECT_EQ(call.RequestId().size(), 32u);
    made.insert(call.RequestId());
    call.End(absl::OkStatus());
  }
  EXPECT_EQ(made.size(), kCalls);
}

TEST_F(CallTest, ATraceParentIsW3Cs) {
  const std::string good =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto of = [&](const std::string& value) {
    grpc::ServerContext context;
    grpc::testing::ServerContextTestSpouse spouse(&context);
    spouse.AddClientMetadata("traceparent", value);
    Call call(open_, methods::kGet, &context);
    return call.TraceParent();
  };
  EXPECT_EQ(of(good), good);
  const auto with = [&](size_t at, char c) {
    std::string text = good;
    text[at] = c;
    return text;
  };
  for (const std::string& bad :
       {std::string(), good + "0", good.substr(1), with(1, '1'), with(2, '_'),
        with(35, '0'), with(52, '0'), with(5, 'A'), with(40, 'g'),
        with(54, '\n'), "00-" + std::string(32, '0') + good.substr(35),
        good.substr(0, 36) + std::string(16, '0') + good.substr(52)}) {
    EXPECT_EQ(of(bad), "") << bad;
  }
}

TEST_F(CallTest, ALongNameIsCutBetweenCharacters) {
  Say("authorization", "basket");
  Call call(guarded_, methods::kGet, &context_);
  const std::string name = std::string(63, 'a') + "\xc3\xa9" + "b";
  const absl::Status denied = call.Authorize(config::v1::VERB_READ, name);
  EXPECT_EQ(MetadataOf(denied).at("namespace"), std::string(63, 'a'));
  EXPECT_EQ(call.Namespace(), std::string(63, 'a'));
  call.End(denied);
}

TEST(VerbsTest, AreASet) {
  const Verbs read_write = {config::v1::VERB_READ, config::v1::VERB_WRITE};
  EXPECT_TRUE(Verbs().empty());
  EXPECT_TRUE(read_write.Contains(config::v1::VERB_READ));
  EXPECT_TRUE(read_write.Contains(Verbs()));
  EXPECT_FALSE(read_write.Contains(Verbs::All()));
  EXPECT_EQ(read_write.Without(config::v1::VERB_READ),
            Verbs(config::v1::VERB_WRITE));
  EXPECT_EQ(Verbs(config::v1::VERB_READ) | config::v1::VERB_WRITE, read_write);
  EXPECT_EQ(Verbs::All().ToString(), "read, write, watch, settle, admin");
  EXPECT_EQ(Verbs().ToString(), "");
}

TEST(VerbsTest, OfAnOperationAreWhatItReadsAndWrites) {
  const Verbs read = config::v1::VERB_READ;
  const Verbs write = config::v1::VERB_WRITE;
  EXPECT_EQ(VerbsOf(Operation::Get("k")), read);
  EXPECT_EQ(VerbsOf(Operation::Contains("k")), read);
  EXPECT_EQ(VerbsOf(Operation::Put("k", "v")), write);
  EXPECT_EQ(VerbsOf(Operation::Remove("k")), write);
  EXPECT_EQ(VerbsOf(Operation::Touch("k")), write);
  EXPECT_EQ(VerbsOf(Operation::Append("k", "v")), write);
  EXPECT_EQ(VerbsOf(Operation::Combine("k", Combination::kAdd, 1)),
            read | write);
  EXPECT_EQ(VerbsOf(Operation::Gather("k", nullptr, "v")), read | write);
  Operation op = Operation::Get("k");
  op.touch = true;
  EXPECT_EQ(VerbsOf(op), read | write);
  op = Operation::Put("k", "v");
  op.return_previous = true;
  EXPECT_EQ(VerbsOf(op), read | write);
  op.kind = OpKind::kRemove;
  EXPECT_EQ(VerbsOf(op), read | write);
}

// The table and the services' own descriptors say the same.
TEST(MethodTest, AllMethodsOfAllServicesAreInTheTable) {
  // To ask for one of its messages is what links a file's descriptors.
  for (const auto* message :
       {v1::PutRequest::descriptor(), v1::Namespace::descriptor(),
        v1::Group::descriptor(), v1::GetServerRequest::descriptor(),
        testing::v1::NowRequest::descriptor(), peer::v1::Frame::descriptor()}) {
    ASSERT_NE(message, nullptr);
  }
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  std::set<absl::string_view> services;
  for (size_t i = 0; i < kMethods.size(); ++i) {
    const Method& method = kMethods[i];
    EXPECT_EQ(method.index, i);
    services.insert(method.service);
    const auto* descriptor =
        pool.FindMethodByName(absl::StrCat(method.service, ".", method.name));
    ASSERT_NE(descriptor, nullptr) << method.name;
    const absl::string_view type =
        descriptor->client_streaming()   ? "bidi_stream"
        : descriptor->server_streaming() ? "server_stream"
                                         : "unary";
    EXPECT_EQ(MethodTypeName(method.type), type) << method.name;
  }
  size_t methods = 0;
  for (const absl::string_view service : services) {
    methods += static_cast<size_t>(
        pool.FindServiceByName(std::string(service))->method_count());
  }
  EXPECT_EQ(methods, kMethods.size());
}

TEST_F(CallTest, WhatALimitRefusesIsToldToObservers) {
  const absl::Status full = ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxEntries, "full");
  Call call(open_, methods::kExecute, &context_);
  EXPECT_TRUE(call.Authorize(config::v1::VERB_WRITE, "baskets").ok());
  RefusalCount refused;
  refused.Add(full);
  refused.Add(absl::OkStatus());
  refused.Add(absl::FailedPreconditionError("a condition is no limit"));
  refused.Add(full);
  refused.Add(ErrorWithReason(absl::StatusCode::kResourceExhausted,
                              Reason::kMaxOperationRate, "too fast"));
  refused.Count(call);
  call.End(full);
  EXPECT_THAT(
      recorder_.seen,
      ElementsAre("started Execute", "refused Execute MAX_ENTRIES 2 baskets",
                  "refused Execute MAX_OPERATION_RATE 1 baskets",
                  "refused Execute MAX_ENTRIES 1 baskets",
                  "handled Execute 8 anonymous baskets"));
}

TEST_F(CallTest, AWatchThatEndsBecauseItsPlaceIsTrimmedIsRefused) {
  Call call(open_, methods::kWatchExpired, &context_);
  EXPECT_TRUE(call.Authorize(config::v1::VERB_WATCH, "baskets").ok());
  call.End(ErrorWithReason(absl::StatusCode::kOutOfRange,
                           Reason::kResumePointTrimmed, "3 are gone"));
  EXPECT_THAT(recorder_.seen,
              ElementsAre("started WatchExpired",
                          "refused WatchExpired RESUME_POINT_TRIMMED 1 baskets",
                          "handled WatchExpired 11 anonymous baskets"));
}

TEST_F(CallTest, RefusalsWithManyMessagesAreCountedToo) {
  RefusalCount refused;
  for (int i = 0; i < 100; ++i) {
    refused.Add(absl::ResourceExhaustedError(absl::StrCat(i)));
  }
  Call call(open_, methods::kExecute, &context_);
  refused.Count(call);
  EXPECT_EQ(recorder_.refused, 100u);
}

}  // namespace
}  // namespace timecache::server
