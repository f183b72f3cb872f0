#include "server/rpc/admin/namespace_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_namespace.h"
#include "server/api/proto_time.h"
#include "server/api/update_mask.h"
#include "server/base/error.h"
#include "server/base/range_check.h"

namespace timecache::server {
namespace {

// Of ListNamespaces. Less than 512 B each: 2 MiB at most.
constexpr int kDefaultPageNamespaces = 1'000;
constexpr int kMaxPageNamespaces = 4'000;

// Requests about a namespace have it as `name` and its options in `options`.
std::string NamespaceFieldPath(const std::string& field) {
  return field == "namespace" ? "name" : absl::StrCat("options.", field);
}

// A list's stand at the top.
std::string NamespaceListFieldPath(const std::string& field) { return field; }

std::string DeathsFieldPath(const std::string& field) {
  return field == "namespace" ? "name" : field;
}

std::string NamespaceUpdateFieldPath(const std::string& field) {
  if (field == "update_mask") return field;
  return absl::StrCat("namespace.", NamespaceFieldPath(field));
}

void SetPage(const Page<NamespaceInfo>& page,
             v1::ListNamespacesResponse* response) {
  for (const NamespaceInfo& item : page.items) {
    SetNamespace(item, response->add_namespaces());
  }
  if (page.more) response->set_next_page_token(page.items.back().name);
}

template <typename Response>
void SetWarnings(const NamespaceInfo& from, Response* to) {
  for (const std::string& warning : from.warnings) to->add_warnings(warning);
}

// A dead letter is an entry there: a caller without permission to put it must
// not have it put.
absl::Status AuthorizeDeadLetters(const v1::NamespaceOptions& options,
                                  Call* call) {
  if (options.dead_letter_namespace().empty()) return absl::OkStatus();
  return call->AuthorizeAlso(config::v1::VERB_WRITE,
                             options.dead_letter_namespace());
}

absl::Status ToChanges(const v1::UpdateNamespaceRequest& request,
                       v1::NamespaceOptions* changes) {
  v1::NamespaceOptions defaults;
  SetOptions(NamespaceOptions(), &defaults);
  return ApplyUpdateMask(
      request.update_mask(), request.namespace_().options(), defaults,
      {"num_shards", "num_partitions", "durability"}, changes);
}

absl::Status HandleCreateNamespace(
    const Admin& admin,
    const SharedCall<v1::CreateNamespaceRequest, v1::CreateNamespaceResponse>&
        unary) {
  const auto& request = unary->request();
  const absl::Status access =
      AuthorizeDeadLetters(request.options(), &unary->call());
  if (!access.ok()) return access;
  const absl::StatusOr<NamespaceOptions> options =
      NewOptions(request.options(), admin.default_partitions);
  if (!options.ok()) return options.status();
  admin.store->CreateNamespace(
      request.name(), *options,
      FinishWith(unary, [&admin, unary](const NamespaceInfo& created) {
        v1::Namespace* const to = unary->response().mutable_namespace_();
        SetNamespace(created, to);
        SetWarnings(created, &unary->response());
        admin.observer({.event = "namespace_created",
                        .name = unary->request().name(),
                        .options = &to->options(),
                        .warnings = created.warnings});
      }));
  return absl::OkStatus();
}

absl::Status HandleGetNamespace(
    const Admin& admin,
    const SharedCall<v1::GetNamespaceRequest, v1::GetNamespaceResponse>&
        unary) {
  const auto& request = unary->request();
  admin.store->GetNamespace(
      request.name(), request.include_statistics(),
      FinishWith(unary, [unary](const NamespaceInfo& found) {
        SetNamespace(found, unary->response().mutable_namespace_());
      }));
  return absl::OkStatus();
}

absl::Status HandleListNamespaces(
    const Admin& admin,
    const SharedCall<v1::ListNamespacesRequest, v1::ListNamespacesResponse>&
        unary) {
  const auto& request = unary->request();
  const absl::Status access = unary->call().Identify();
  if (!access.ok()) return access;
  absl::StatusOr<ListQuery> query =
      ToListQuery(request, kDefaultPageNamespaces, kMaxPageNamespaces);
  if (!query.ok()) return query.status();
  query->visible = [unary](absl::string_view name) {
    return unary->call().MaySee(name);
  };
  admin.store->ListNamespaces(
      *std::move(query),
      FinishWith(unary, [unary](const Page<NamespaceInfo>& page) {
        SetPage(page, &unary->response());
      }));
  return absl::OkStatus();
}

absl::Status HandleUpdateNamespace(
    const Admin& admin,
    const SharedCall<v1::UpdateNamespaceRequest, v1::UpdateNamespaceResponse>&
        unary) {
  const auto& request = unary->request();
  const auto changes = std::make_shared<v1::NamespaceOptions>();
  absl::Status status = ToChanges(request, changes.get());
  if (status.ok()) status = AuthorizeDeadLetters(*changes, &unary->call());
  if (!status.ok()) return status;
  // The default is never less than the ttl.
  const bool default_max_ttl =
      changes->has_max_ttl() && !request.namespace_().options().has_max_ttl();
  admin.store->UpdateNamespace(
      request.namespace_().name(),
      [changes, default_max_ttl](NamespaceOptions* options) {
        absl::Status changed = ChangeOptions(*changes, options);
        if (default_max_ttl) {
          options->max_ttl_us = std::max(options->max_ttl_us, options->ttl_us);
        }
        return changed;
      },
      FinishWith(unary, [&admin, unary, changes](const NamespaceInfo& updated) {
        SetNamespace(updated, unary->response().mutable_namespace_());
        SetWarnings(updated, &unary->response());
        admin.observer({.event = "namespace_updated",
                        .name = updated.name,
                        .options = changes.get(),
                        .warnings = updated.warnings});
      }));
  return absl::OkStatus();
}

absl::Status HandleDeleteNamespace(
    const Admin& admin,
    const SharedCall<v1::DeleteNamespaceRequest, v1::DeleteNamespaceResponse>&
        unary) {
  const auto& request = unary->request();
  admin.store->DeleteNamespace(
      request.name(), [&admin, unary](const absl::Status& status) {
        if (status.ok()) {
          admin.observer(
              {.event = "namespace_deleted", .name = unary->request().name()});
        }
        unary->Finish(status);
      });
  return absl::OkStatus();
}

absl::Status HandleRotateNamespace(
    const Admin& admin,
    const SharedCall<v1::RotateNamespaceRequest, v1::RotateNamespaceResponse>&
        unary) {
  const auto& request = unary->request();
  admin.store->RotateNamespace(
      request.name(), FinishWith(unary, [&admin, unary](int64_t died) {
        unary->response().set_entries(static_cast<uint64_t>(died));
        admin.observer({.event = "namespace_rotated",
                        .name = unary->request().name(),
                        .entries = died});
      }));
  return absl::OkStatus();
}

absl::StatusOr<DeathsQuery> ToQuery(const v1::GetDeathsRequest& request) {
  DeathsQuery query;
  if (request.max_bars() != 0) query.max_bars = request.max_bars();
  absl::Status status = CheckNumber("max_bars", request.max_bars(), 0,
                                    int64_t{DeathsQuery::kMaxBars});
  if (status.ok() && request.has_within()) {
    status = SetMicros(request.within(), "within", &query.within_us);
    status.Update(
        CheckDuration("within", query.within_us, kMinTtlUs, kMaxTtlUs));
  }
  if (!status.ok()) return status;
  return query;
}

void SetDeaths(const DeathsAhead& from, v1::GetDeathsResponse* to) {
  SetTime(from.now_us, to->mutable_server_time());
  int64_t begin_us = from.begin_us;
  for (const DeathsAhead::Amount& bar : from.bars) {
    v1::DeathBar* const added = to->add_bars();
    SetTime(begin_us, added->mutable_begin());
    SetTime(begin_us += from.bar_us, added->mutable_end());
    added->set_entries(static_cast<uint64_t>(bar.entries));
    added->set_bytes(static_cast<uint64_t>(bar.bytes));
  }
  to->set_later_entries(static_cast<uint64_t>(from.later.entries));
  to->set_later_bytes(static_cast<uint64_t>(from.later.bytes));
}

absl::Status HandleGetDeaths(
    const Admin& admin,
    const SharedCall<v1::GetDeathsRequest, v1::GetDeathsResponse>& unary) {
  const absl::StatusOr<DeathsQuery> query = ToQuery(unary->request());
  if (!query.ok()) return query.status();
  admin.store->GetDeaths(unary->request().name(), *query,
                         FinishWith(unary, [unary](const DeathsAhead& deaths) {
                           SetDeaths(deaths, &unary->response());
                         }));
  return absl::OkStatus();
}

absl::Status HandleGetHotKeys(
    const Admin& admin,
    const SharedCall<v1::GetHotKeysRequest, v1::GetHotKeysResponse>& unary) {
  const uint32_t max_keys = unary->request().max_keys();
  absl::Status status =
      CheckNumber("max_keys", max_keys, 0, int64_t{HotKeys::kMaxKeys});
  if (!status.ok()) return status;
  admin.store->GetHotKeys(
      unary->request().name(),
      max_keys == 0 ? HotKeys::kDefaultKeys : size_t{max_keys},
      FinishWith(unary, [unary](const HotKeys& from) {
        v1::GetHotKeysResponse& to = unary->response();
        for (const HotKeys::Key& key : from.keys) {
          v1::HotKey* const added = to.add_keys();
          added->set_key(key.key);
          added->set_reads_per_second(key.reads_per_second);
          added->set_writes_per_second(key.writes_per_second);
          added->set_value_bytes(key.value_bytes);
        }
        SetDuration(from.window_us, to.mutable_window());
        to.set_sampled(from.sampled);
        to.set_operations_per_second(from.operations_per_second);
      }));
  return absl::OkStatus();
}

absl::Status HandleGetOwners(
    const Admin& admin,
    const SharedCall<v1::GetOwnersRequest, v1::GetOwnersResponse>& unary) {
  const std::string& name = unary->request().name();
  absl::Status access = unary->call().Identify();
  if (access.ok() && !unary->call().MaySee(name)) {
    access = unary->call().Deny(config::v1::VERB_READ, name);
  }
  if (!access.ok()) return access;
  if (admin.owners_of == nullptr) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition,
                           Reason::kNoCluster,
                           "no nodes share the ownership here: that takes a "
                           "cluster with cluster.forward_calls");
  }
  admin.store->GetNamespace(
      name, /*include_statistics=*/false,
      FinishWith(unary, [&admin, unary](const NamespaceInfo& found) {
        for (std::string& address :
             admin.owners_of(found.name, found.options.num_partitions)) {
          unary->response().add_addresses(std::move(address));
        }
      }));
  return absl::OkStatus();
}

}  // namespace

NamespaceService::NamespaceService(const CallGate* gate, Admin admin,
                                   CountedCalls* counted)
    : AdminService(gate, std::move(admin), counted) {
  ServeUnary(methods::kCreateNamespace, config::v1::VERB_ADMIN,
             NamespaceFieldPath, HandleCreateNamespace);
  ServeUnary(methods::kGetNamespace, config::v1::VERB_READ, NamespaceFieldPath,
             HandleGetNamespace);
  ServeUnary(methods::kListNamespaces, std::nullopt, NamespaceListFieldPath,
             HandleListNamespaces);
  ServeUnary(methods::kUpdateNamespace, config::v1::VERB_ADMIN,
             NamespaceUpdateFieldPath, HandleUpdateNamespace);
  ServeUnary(methods::kDeleteNamespace, config::v1::VERB_ADMIN,
             NamespaceFieldPath, HandleDeleteNamespace);
  ServeUnary(methods::kRotateNamespace, config::v1::VERB_ADMIN,
             NamespaceFieldPath, HandleRotateNamespace);
  ServeUnary(methods::kGetDeaths, config::v1::VERB_READ, DeathsFieldPath,
             HandleGetDeaths);
  ServeUnary(methods::kGetHotKeys, config::v1::VERB_READ, DeathsFieldPath,
             HandleGetHotKeys);
  ServeUnary(methods::kGetOwners, std::nullopt, NamespaceFieldPath,
             HandleGetOwners);
}

}  // namespace timecache::server
