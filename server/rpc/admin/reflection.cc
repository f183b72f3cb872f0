#include "server/rpc/admin/reflection.h"

#include <memory>
#include <vector>

#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/impl/server_builder_option.h"

namespace timecache::server {
namespace {

class ReflectionOption final : public grpc::ServerBuilderOption {
 public:
  explicit ReflectionOption(bool on) : on_(on) {}

  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->clear();
    if (!on_) return;
    plugins->push_back(
        std::make_unique<grpc::reflection::ProtoServerReflectionPlugin>());
  }

 private:
  const bool on_;
};

}  // namespace

void SetReflection(bool on, grpc::ServerBuilder* builder) {
  builder->SetOption(std::make_unique<ReflectionOption>(on));
}

}  // namespace timecache::server
