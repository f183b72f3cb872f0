#include "tests/support/test_server.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/api/proto_time.h"
#include "server/main/config/config.h"
#include "tests/support/await.h"
#include "tests/support/rpc.h"

namespace timecache::test {
namespace {

server::ServerOptions ToServerOptions(const TestServerOptions& options,
                                      server::ManualClock* clock,
                                      server::Reaper* reaper,
                                      server::Store* store,
                                      server::AdminObserver observer) {
  server::ServerOptions to;
  to.addresses = {"127.0.0.1:0"};
  to.limits = server::DefaultConfig().limits();
  to.limits.set_max_watchers(static_cast<uint32_t>(options.max_watchers));
  to.virtual_clock = clock;
  to.flush = [reaper] { reaper->Flush(); };
  to.access = options.access;
  to.peer_store = store;
  to.observer = std::move(observer);
  if (options.change) options.change(&to);
  return to;
}

// With the default of what is not set.
server::RegistryLimits LimitsOf(const TestServerOptions& options) {
  server::RegistryLimits limits = options.limits;
  if (limits.max_namespaces == 0) {
    limits.max_namespaces =
        static_cast<int>(server::DefaultConfig().limits().max_namespaces());
  }
  return limits;
}

std::string TextOf(const server::AdminChange& change) {
  std::string text = absl::StrCat(change.event, " ", change.name);
  if (!change.group.empty()) absl::StrAppend(&text, " group: ", change.group);
  if (change.options != nullptr) {
    absl::StrAppend(&text, " ", change.options->ShortDebugString());
  }
  if (change.entries.has_value()) {
    absl::StrAppend(&text, " entries: ", *change.entries);
  }
  return text;
}

}  // namespace

TestServer::TestServer(const TestServerOptions& options)
    : manual_clock_(options.start_us),
      reaper_(&manual_clock_),
      registry_(&manual_clock_, &reaper_, LimitsOf(options)),
      maps_(&registry_, &manual_clock_),
      store_(&maps_, &registry_),
      wrapped_store_(options.wrap_store ? options.wrap_store(&store_)
                                        : nullptr),
      server_(wrapped_store_ != nullptr ? wrapped_store_.get() : &store_,
              &manual_clock_,
              ToServerOptions(options, &manual_clock_, &reaper_, &store_,
                              [this](const server::AdminChange& change) {
                                absl::MutexLock lock(&mu_);
                                observed_.push_back(TextOf(change));
                              })) {
  const absl::Status started = server_.Start();
  EXPECT_TRUE(started.ok()) << started;
  channel_ = NewChannel();
  data_ = v1::TimeCacheService::NewStub(channel_);
  namespaces_ = v1::NamespaceService::NewStub(channel_);
  groups_ = v1::GroupService::NewStub(channel_);
  about_ = v1::ServerService::NewStub(channel_);
  clock_stub_ = testing::v1::VirtualClockService::NewStub(channel_);
  if (options.access == nullptr) {
    Create("default");
  } else {
    EXPECT_TRUE(registry_.Create("default", server::NamespaceOptions()).ok());
  }
}

std::shared_ptr<grpc::Channel> TestServer::NewChannel(
    grpc::ChannelArguments arguments) const {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return Connected(grpc::CreateCustomChannel(server_.addresses().at(0),
                                             grpc::InsecureChannelCredentials(),
                                             arguments));
}

std::vector<std::string> TestServer::observed() const {
  absl::MutexLock lock(&mu_);
  return observed_;
}

void TestServer::Create(const std::string& name, const std::string& options) {
  v1::CreateNamespaceRequest request;
  request.set_name(name);
  *request.mutable_options() = Proto<v1::NamespaceOptions>(options);
  Must(Call(namespaces(), &v1::NamespaceService::Stub::CreateNamespace,
            request));
}

v1::Namespace TestServer::Describe(const std::string& name) {
  v1::GetNamespaceRequest request;
  request.set_name(name);
  request.set_include_statistics(true);
  return Must(Call(namespaces(), &v1::NamespaceService::Stub::GetNamespace,
                   request))
      .namespace_();
}

uint64_t TestServer::Put(const std::string& key, const std::string& value,
                         int64_t own_ttl_us, const std::string& name) {
  v1::PutRequest request;
  request.set_namespace_(name);
  request.set_key(key);
  request.set_value(value);
  if (own_ttl_us != 0) server::SetDuration(own_ttl_us, request.mutable_ttl());
  return Must(Call(data(), &v1::TimeCacheService::Stub::Put, request))
      .version();
}

void TestServer::Fill(int count, const std::string& prefix,
                      const std::string& value, const std::string& name) {
  const std::shared_ptr<server::TimeCacheMap> map =
      registry_.Find(name).value();
  for (int i = 0; i < count; ++i) {
    const std::string key = absl::StrCat(prefix, i);
    const server::Result result =
        map->Apply(server::Operation::Put(key, value), now_us());
    EXPECT_TRUE(result.status.ok()) << result.status;
  }
}

v1::GetResponse TestServer::Get(const std::string& key,
                                const std::string& name) {
  v1::GetRequest request;
  request.set_namespace_(name);
  request.set_key(key);
  return Must(Call(data(), &v1::TimeCacheService::Stub::Get, request));
}

uint64_t TestServer::Rotate(const std::string& name) {
  v1::RotateNamespaceRequest request;
  request.set_name(name);
  return Must(Call(namespaces(), &v1::NamespaceService::Stub::RotateNamespace,
                   request))
      .entries();
}

void TestServer::AdvanceTo(int64_t time_us) {
  testing::v1::AdvanceRequest request;
  server::SetTime(time_us, request.mutable_to());
  Must(
      Call(clock(), &testing::v1::VirtualClockService::Stub::Advance, request));
}

void TestServer::AwaitWatchers(uint64_t count, const std::string& name) {
  EXPECT_TRUE(Await([&] {
    return Describe(name).statistics().watchers() == count;
  })) << Describe(name).statistics().watchers()
      << " watchers";
}

}  // namespace timecache::test
