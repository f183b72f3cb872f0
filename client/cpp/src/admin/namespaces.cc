#include <optional>
#include <string>
#include <vector>

#include "client/cpp/src/admin/update_mask.h"
#include "client/cpp/src/data/convert.h"
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

v1::LimitPolicy PolicyToProto(LimitPolicy policy) {
  return policy == LimitPolicy::kEvictOldest ? v1::LIMIT_POLICY_EVICT_OLDEST
                                             : v1::LIMIT_POLICY_REJECT;
}

v1::Durability DurabilityToProto(Durability durability) {
  switch (durability) {
    case Durability::kMemory:
      return v1::DURABILITY_MEMORY;
    case Durability::kAsync:
      return v1::DURABILITY_ASYNC;
    case Durability::kSync:
      return v1::DURABILITY_SYNC;
  }
  return v1::DURABILITY_UNSPECIFIED;
}

// None for one that only a later server has.
std::optional<Durability> DurabilityFromProto(v1::Durability durability) {
  switch (durability) {
    case v1::DURABILITY_MEMORY:
      return Durability::kMemory;
    case v1::DURABILITY_ASYNC:
      return Durability::kAsync;
    case v1::DURABILITY_SYNC:
      return Durability::kSync;
    default:
      return std::nullopt;
  }
}

v1::NamespaceOptions MakeOptions(const NamespaceOptions& options) {
  v1::NamespaceOptions proto;
  if (options.ttl) *proto.mutable_ttl() = ToProto(*options.ttl);
  if (options.num_buckets) proto.set_num_buckets(*options.num_buckets);
  if (options.max_ttl) *proto.mutable_max_ttl() = ToProto(*options.max_ttl);
  if (options.sliding) proto.set_sliding(*options.sliding);
  if (options.max_entries) proto.set_max_entries(*options.max_entries);
  if (options.max_bytes) proto.set_max_bytes(*options.max_bytes);
  if (options.limit_policy) {
    proto.set_limit_policy(PolicyToProto(*options.limit_policy));
  }
  if (options.max_value_bytes) {
    proto.set_max_value_bytes(*options.max_value_bytes);
  }
  if (options.event_retention) {
    *proto.mutable_event_retention() = ToProto(*options.event_retention);
  }
  if (options.event_retention_bytes) {
    proto.set_event_retention_bytes(*options.event_retention_bytes);
  }
  if (options.num_shards) proto.set_num_shards(*options.num_shards);
  if (options.dead_letter_namespace) {
    proto.set_dead_letter_namespace(*options.dead_letter_namespace);
  }
  if (options.max_operations_per_second) {
    proto.set_max_operations_per_second(*options.max_operations_per_second);
  }
  if (options.max_backlog_bytes) {
    proto.set_max_backlog_bytes(*options.max_backlog_bytes);
  }
  if (options.unused_group_ttl) {
    *proto.mutable_unused_group_ttl() = ToProto(*options.unused_group_ttl);
  }
  if (options.durability) {
    proto.set_durability(DurabilityToProto(*options.durability));
  }
  if (options.restart_policy) {
    proto.set_restart_policy(*options.restart_policy == RestartPolicy::kPause
                                 ? v1::RESTART_POLICY_PAUSE
                                 : v1::RESTART_POLICY_FIRE);
  }
  return proto;
}

NamespaceOptions ReadOptions(const v1::NamespaceOptions& proto) {
  NamespaceOptions options;
  if (proto.has_ttl()) options.ttl = FromProto(proto.ttl());
  if (proto.has_num_buckets()) options.num_buckets = proto.num_buckets();
  if (proto.has_max_ttl()) options.max_ttl = FromProto(proto.max_ttl());
  if (proto.has_sliding()) options.sliding = proto.sliding();
  if (proto.has_max_entries()) options.max_entries = proto.max_entries();
  if (proto.has_max_bytes()) options.max_bytes = proto.max_bytes();
  if (proto.limit_policy() != v1::LIMIT_POLICY_UNSPECIFIED) {
    options.limit_policy = proto.limit_policy() == v1::LIMIT_POLICY_EVICT_OLDEST
                               ? LimitPolicy::kEvictOldest
                               : LimitPolicy::kReject;
  }
  if (proto.has_max_value_bytes()) {
    options.max_value_bytes = proto.max_value_bytes();
  }
  if (proto.has_event_retention()) {
    options.event_retention = FromProto(proto.event_retention());
  }
  if (proto.has_event_retention_bytes()) {
    options.event_retention_bytes = proto.event_retention_bytes();
  }
  if (proto.has_num_shards()) options.num_shards = proto.num_shards();
  if (proto.has_dead_letter_namespace()) {
    options.dead_letter_namespace = proto.dead_letter_namespace();
  }
  if (proto.has_max_operations_per_second()) {
    options.max_operations_per_second = proto.max_operations_per_second();
  }
  if (proto.has_max_backlog_bytes()) {
    options.max_backlog_bytes = proto.max_backlog_bytes();
  }
  if (proto.has_unused_group_ttl()) {
    options.unused_group_ttl = FromProto(proto.unused_group_ttl());
  }
  options.durability = DurabilityFromProto(proto.durability());
  if (proto.restart_policy() != v1::RESTART_POLICY_UNSPECIFIED) {
    options.restart_policy = proto.restart_policy() == v1::RESTART_POLICY_PAUSE
                                 ? RestartPolicy::kPause
                                 : RestartPolicy::kFire;
  }
  return options;
}

NamespaceStatistics ReadStatistics(const v1::NamespaceStatistics& proto) {
  return {.entries = proto.entries(),
          .bytes = proto.bytes(),
          .memory_bytes = proto.memory_bytes(),
          .live_buckets = proto.live_buckets(),
          .expired = proto.expired(),
          .evicted = proto.evicted(),
          .rotated = proto.rotated(),
          .events_retained = proto.events_retained(),
          .events_retained_bytes = proto.events_retained_bytes(),
          .watchers = proto.watchers(),
          .watermark = FromProto(proto.watermark()),
          .lateness_p50 = FromProto(proto.lateness_p50()),
          .lateness_p99 = FromProto(proto.lateness_p99()),
          .lateness_max = FromProto(proto.lateness_max()),
          .bound_violations = proto.bound_violations(),
          .expired_while_down = proto.expired_while_down(),
          .rate_limited = proto.rate_limited(),
          .puts = proto.puts(),
          .hits = proto.hits(),
          .misses = proto.misses(),
          .appends = proto.appends(),
          .combines = proto.combines(),
          .gathers = proto.gathers(),
          .events_reclaimed = proto.events_reclaimed(),
          .backlog_bytes = proto.backlog_bytes(),
          .backlog_limit_bytes = proto.backlog_limit_bytes(),
          .groups_expired = proto.groups_expired()};
}

Namespace ReadNamespace(const v1::Namespace& proto) {
  Namespace ns = {.name = proto.name(),
                  .options = ReadOptions(proto.options()),
                  .bucket_width = FromProto(proto.bucket_width())};
  if (proto.has_statistics()) {
    ns.statistics = ReadStatistics(proto.statistics());
  }
  return ns;
}

// The response of a create or an update.
template <typename Response>
Namespace ReadChanged(const Response& response) {
  Namespace ns = ReadNamespace(response.namespace_());
  ns.warnings.assign(response.warnings().begin(), response.warnings().end());
  return ns;
}

}  // namespace

absl::StatusOr<Namespace> Client::CreateNamespace(
    std::string_view name, const NamespaceOptions& options,
    const CallOptions& call) const {
  auto request = NameRequest<v1::CreateNamespaceRequest>(name);
  *request.mutable_options() = MakeOptions(options);
  auto response =
      Call(core_->connection, core_->namespaces, &Namespaces::CreateNamespace,
           request, CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadChanged(*response);
}

absl::StatusOr<Namespace> Client::GetNamespace(std::string_view name,
                                               const DescribeOptions& describe,
                                               const CallOptions& call) const {
  auto request = NameRequest<v1::GetNamespaceRequest>(name);
  request.set_include_statistics(describe.include_statistics);
  auto response =
      Call(core_->connection, core_->namespaces, &Namespaces::GetNamespace,
           request, CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return ReadNamespace(response->namespace_());
}

absl::StatusOr<std::vector<Namespace>> Client::ListNamespaces(
    const DescribeOptions& describe, const CallOptions& call) const {
  std::vector<Namespace> all;
  v1::ListNamespacesRequest request;
  request.set_include_statistics(describe.include_statistics);
  do {
    auto page =
        Call(core_->connection, core_->namespaces, &Namespaces::ListNamespaces,
             request, CallPlan(options_, call, Repeat::kSafe));
    if (!page.ok()) return page.status();
    for (const v1::Namespace& each : page->namespaces()) {
      all.push_back(ReadNamespace(each));
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
  *request.mutable_namespace_()->mutable_options() = MakeOptions(options);
  SetUpdateMask(request.namespace_().options(), to_default, request);
  auto response =
      Call(core_->connection, core_->namespaces, &Namespaces::UpdateNamespace,
           request, CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return ReadChanged(*response);
}

absl::Status Client::DeleteNamespace(std::string_view name,
                                     const CallOptions& call) const {
  return Call(core_->connection, core_->namespaces,
              &Namespaces::DeleteNamespace,
              NameRequest<v1::DeleteNamespaceRequest>(name),
              CallPlan(options_, call, Repeat::kUnsafe))
      .status();
}

absl::StatusOr<uint64_t> Client::RotateNamespace(
    std::string_view name, const CallOptions& call) const {
  auto response =
      Call(core_->connection, core_->namespaces, &Namespaces::RotateNamespace,
           NameRequest<v1::RotateNamespaceRequest>(name),
           CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return response->entries();
}

}  // namespace timecache
