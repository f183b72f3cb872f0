#include <string>
#include <vector>

#include "client/cpp/src/admin/messages.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

using Namespaces = v1::NamespaceService::Stub;

template <typename Request>
Request NameRequest(std::string_view name) {
  Request request;
  request.set_name(std::string(name));
  return request;
}

// The response of a create or an update.
template <typename Response>
Namespace ReadChanged(const Response& response) {
  Namespace ns = FromMessage<Namespace>(response.namespace_());
  ns.warnings.assign(response.warnings().begin(), response.warnings().end());
  return ns;
}

}  // namespace

absl::StatusOr<Namespace> Client::CreateNamespace(
    std::string_view name, const NamespaceOptions& options,
    const CallOptions& call) const {
  auto request = NameRequest<v1::CreateNamespaceRequest>(name);
  *request.mutable_options() = ToMessage<v1::NamespaceOptions>(options);
  auto response = Call(core_->endpoints, &Endpoint::namespaces,
                       &Namespaces::CreateNamespace, request,
                       CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadChanged(*response);
}

absl::StatusOr<Namespace> Client::GetNamespace(std::string_view name,
                                               const DescribeOptions& describe,
                                               const CallOptions& call) const {
  auto request = NameRequest<v1::GetNamespaceRequest>(name);
  request.set_include_statistics(describe.include_statistics);
  auto response =
      Call(core_->endpoints, &Endpoint::namespaces, &Namespaces::GetNamespace,
           request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return FromMessage<Namespace>(response->namespace_());
}

absl::StatusOr<std::vector<Namespace>> Client::ListNamespaces(
    const DescribeOptions& describe, const CallOptions& call) const {
  std::vector<Namespace> all;
  v1::ListNamespacesRequest request;
  request.set_include_statistics(describe.include_statistics);
  do {
    auto page = Call(core_->endpoints, &Endpoint::namespaces,
                     &Namespaces::ListNamespaces, request,
                     CallPlan(options_, call, Repeat::kSafe));
    if (!page.ok()) return page.status();
    for (const v1::Namespace& each : page->namespaces()) {
      all.push_back(FromMessage<Namespace>(each));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<Namespace> Client::UpdateNamespace(
    std::string_view name, const NamespaceOptions& options,
    const std::vector<std::string>& to_default, const CallOptions& call) const {
  v1::UpdateNamespaceRequest request;
  request.mutable_namespace_()->set_name(std::string(name));
  *request.mutable_namespace_()->mutable_options() =
      ToMessage<v1::NamespaceOptions>(options);
  SetUpdateMask(request.namespace_().options(), to_default, request);
  auto response = Call(core_->endpoints, &Endpoint::namespaces,
                       &Namespaces::UpdateNamespace, request,
                       CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadChanged(*response);
}

absl::Status Client::DeleteNamespace(std::string_view name,
                                     const CallOptions& call) const {
  return Call(core_->endpoints, &Endpoint::namespaces,
              &Namespaces::DeleteNamespace,
              NameRequest<v1::DeleteNamespaceRequest>(name),
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

absl::StatusOr<uint64_t> Client::RotateNamespace(
    std::string_view name, const CallOptions& call) const {
  auto response = Call(core_->endpoints, &Endpoint::namespaces,
                       &Namespaces::RotateNamespace,
                       NameRequest<v1::RotateNamespaceRequest>(name),
                       CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return response->entries();
}

absl::StatusOr<DeathsAhead> Client::GetDeaths(std::string_view name,
                                              const DeathsOptions& options,
                                              const CallOptions& call) const {
  auto request = NameRequest<v1::GetDeathsRequest>(name);
  request.set_max_bars(options.max_bars);
  if (options.within) *request.mutable_within() = ToProto(*options.within);
  const auto response =
      Call(core_->endpoints, &Endpoint::namespaces, &Namespaces::GetDeaths,
           request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  DeathsAhead deaths = {.server_time = FromProto(response->server_time()),
                        .later_entries = response->later_entries(),
                        .later_bytes = response->later_bytes()};
  for (const v1::DeathBar& bar : response->bars()) {
    deaths.bars.push_back({.begin = FromProto(bar.begin()),
                           .end = FromProto(bar.end()),
                           .entries = bar.entries(),
                           .bytes = bar.bytes()});
  }
  return deaths;
}

absl::StatusOr<HotKeys> Client::GetHotKeys(std::string_view name,
                                           uint32_t max_keys,
                                           const CallOptions& call) const {
  auto request = NameRequest<v1::GetHotKeysRequest>(name);
  request.set_max_keys(max_keys);
  auto response =
      Call(core_->endpoints, &Endpoint::namespaces, &Namespaces::GetHotKeys,
           request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  HotKeys hot = {.window = FromProto(response->window()),
                 .sampled = response->sampled(),
                 .operations_per_second = response->operations_per_second()};
  for (v1::HotKey& key : *response->mutable_keys()) {
    hot.keys.push_back({.key = std::move(*key.mutable_key()),
                        .reads_per_second = key.reads_per_second(),
                        .writes_per_second = key.writes_per_second(),
                        .value_bytes = key.value_bytes()});
  }
  return hot;
}

}  // namespace timecache
