#include "server/service/admin/namespace_service.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/admin/answer.h"
#include "server/service/admin/update_mask.h"
#include "server/service/call/convert.h"

namespace timecache {
namespace {

// Of ListNamespaces. Less than 512 B each: 2 MiB at most.
constexpr int kDefaultPageNamespaces = 1'000;
constexpr int kMaxPageNamespaces = 4'000;
// Of the registry's, that are looked at together.
constexpr size_t kListStep = 256;

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;

// Requests about a namespace have it as `name` and its options in `options`.
std::string FieldPath(const std::string& field) {
  return field == "namespace" ? "name" : absl::StrCat("options.", field);
}

// A list's stand at the top.
std::string ListFieldPath(const std::string& field) { return field; }

std::string UpdateFieldPath(const std::string& field) {
  if (field == "update_mask") return field;
  return absl::StrCat("namespace.", FieldPath(field));
}

// A dead letter is an entry there: who may not put it may not have it put.
absl::Status AuthorizeDeadLetters(const v1::NamespaceOptions& options,
                                  Call* call) {
  if (options.dead_letter_namespace().empty()) return absl::OkStatus();
  return call->AuthorizeAlso(config::v1::VERB_WRITE,
                             options.dead_letter_namespace());
}

absl::Status ToChanges(const v1::UpdateNamespaceRequest& request,
                       v1::NamespaceOptions* changes) {
  v1::NamespaceOptions defaults;
  SetOptions(MapOptions(), &defaults);
  return ApplyUpdateMask(request.update_mask(), request.namespace_().options(),
                         defaults, "num_shards", changes);
}

}  // namespace

grpc::ServerUnaryReactor* NamespaceService::CreateNamespace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::CreateNamespaceRequest;
  using Response = v1::CreateNamespaceResponse;
  return Answer<Request, Response>(
      gate_, methods::kCreateNamespace, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.name());
        if (access.ok()) access = AuthorizeDeadLetters(request.options(), call);
        if (!access.ok()) return access;
        const absl::StatusOr<MapOptions> options =
            NewOptions(request.options());
        if (!options.ok()) return options.status();
        const MapOr map = registry_->Create(request.name(), *options);
        if (map.ok()) {
          SetNamespace(**map, response->mutable_namespace_());
          observer_({.event = "namespace_created",
                     .name = request.name(),
                     .options = &response->namespace_().options()});
        }
        return map.status();
      });
}

grpc::ServerUnaryReactor* NamespaceService::GetNamespace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::GetNamespaceRequest;
  using Response = v1::GetNamespaceResponse;
  return Answer<Request, Response>(
      gate_, methods::kGetNamespace, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_READ, request.name());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.name());
        if (map.ok()) {
          Describe(map->get(), request.include_statistics(),
                   response->mutable_namespace_());
        }
        return map.status();
      });
}

void NamespaceService::Describe(TimeCacheMap* map, bool include_statistics,
                                v1::Namespace* to) const {
  SetNamespace(*map, to);
  if (include_statistics) {
    SetStatistics(map->GetStatistics(clock_->NowUs()),
                  to->mutable_statistics());
  }
}

grpc::ServerUnaryReactor* NamespaceService::ListNamespaces(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::ListNamespacesRequest;
  using Response = v1::ListNamespacesResponse;
  return Answer<Request, Response>(
      gate_, methods::kListNamespaces, context, bytes, answer, ListFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access = call->Identify();
        return access.ok() ? ListPage(request, *call, response) : access;
      });
}

// The token is the name behind which the page begins. One more than the page
// holds is looked for, so that the last page knows that it is.
absl::Status NamespaceService::ListPage(
    const v1::ListNamespacesRequest& request, const Call& call,
    v1::ListNamespacesResponse* response) const {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("must not be negative, as ",
                                                  request.page_size(), " is"));
  }
  std::string after = request.page_token();
  if (!after.empty() && !ValidateNamespaceName(after).ok()) {
    return InvalidField("page_token",
                        "must be the next_page_token of a page before");
  }
  int left = std::min(request.page_size(), kMaxPageNamespaces);
  if (left == 0) left = kDefaultPageNamespaces;
  for (;;) {
    const auto some = registry_->ListAfter(after, kListStep);
    for (const auto& map : some) {
      if (!call.MaySee(map->name())) continue;
      if (left == 0) {
        response->set_next_page_token(response->namespaces().rbegin()->name());
        return absl::OkStatus();
      }
      --left;
      Describe(map.get(), request.include_statistics(),
               response->add_namespaces());
    }
    if (some.size() < kListStep) return absl::OkStatus();
    after = some.back()->name();
  }
}

grpc::ServerUnaryReactor* NamespaceService::UpdateNamespace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::UpdateNamespaceRequest;
  using Response = v1::UpdateNamespaceResponse;
  return Answer<Request, Response>(
      gate_, methods::kUpdateNamespace, context, bytes, answer, UpdateFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const std::string& name = request.namespace_().name();
        absl::Status status = call->Authorize(config::v1::VERB_ADMIN, name);
        if (!status.ok()) return status;
        v1::NamespaceOptions changes;
        status = ToChanges(request, &changes);
        if (status.ok()) status = AuthorizeDeadLetters(changes, call);
        if (!status.ok()) return status;
        const bool own_max_ttl = request.namespace_().options().has_max_ttl();
        const MapOr map = registry_->Update(name, [&](MapOptions* options) {
          absl::Status changed = ChangeOptions(changes, options);
          // The default is never less than the ttl.
          if (changes.has_max_ttl() && !own_max_ttl) {
            options->max_ttl_us =
                std::max(options->max_ttl_us, options->ttl_us);
          }
          return changed;
        });
        if (map.ok()) {
          SetNamespace(**map, response->mutable_namespace_());
          observer_({.event = "namespace_updated",
                     .name = name,
                     .options = &changes});
        }
        return map.status();
      });
}

grpc::ServerUnaryReactor* NamespaceService::DeleteNamespace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::DeleteNamespaceRequest;
  using Response = v1::DeleteNamespaceResponse;
  return Answer<Request, Response>(
      gate_, methods::kDeleteNamespace, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* /*response*/) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.name());
        if (!access.ok()) return access;
        const absl::Status status = registry_->Delete(request.name());
        if (status.ok()) {
          observer_({.event = "namespace_deleted", .name = request.name()});
        }
        return status;
      });
}

grpc::ServerUnaryReactor* NamespaceService::RotateNamespace(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::RotateNamespaceRequest;
  using Response = v1::RotateNamespaceResponse;
  return Answer<Request, Response>(
      gate_, methods::kRotateNamespace, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.name());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.name());
        if (map.ok()) {
          const int64_t died = (*map)->Rotate(clock_->NowUs());
          response->set_entries(static_cast<uint64_t>(died));
          observer_({.event = "namespace_rotated",
                     .name = request.name(),
                     .entries = died});
        }
        return map.status();
      });
}

}  // namespace timecache
