#include "server/service/admin/namespace_service.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/call/convert.h"
#include "server/service/call/unary_call.h"

namespace timecache {
namespace {

// Of ListNamespaces. Less than 512 B each: 2 MiB at most.
constexpr int kDefaultPageNamespaces = 1'000;
constexpr int kMaxPageNamespaces = 4'000;
// Of the registry's, that are looked at together.
constexpr size_t kListStep = 256;

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;
using GroupOr = absl::StatusOr<std::shared_ptr<ConsumerGroup>>;

// Requests about a namespace have it as `name` and its options in `options`.
std::string FieldPath(const std::string& field) {
  return field == "namespace" ? "name" : absl::StrCat("options.", field);
}

// A list's stand at the top.
std::string ListFieldPath(const std::string& field) { return field; }

// Those about a group have the group as `name`.
std::string GroupFieldPath(const std::string& field) {
  if (field == "namespace") return field;
  return field == "group" ? "name" : absl::StrCat("options.", field);
}

// A dead letter is an entry there: who may not put it may not have it put.
absl::Status AuthorizeDeadLetters(const v1::NamespaceOptions& options,
                                  Call* call) {
  if (options.dead_letter_namespace().empty()) return absl::OkStatus();
  return call->AuthorizeAlso(v1::VERB_WRITE, options.dead_letter_namespace());
}

// Answers inline: `handle` gets the call, the request and the response.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* Answer(const CallGate& gate, const Method& method,
                                 grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* bytes,
                                 grpc::ByteBuffer* answer,
                                 Call::FieldPath field_path,
                                 const Handle& handle) {
  UnaryCall<Request, Response> unary(gate, method, context, bytes, answer);
  absl::Status status = unary.Read();
  if (status.ok()) status = unary.CheckShare();
  if (status.ok()) {
    status = handle(&unary.call(), unary.request(), &unary.response());
  }
  return unary.Finish(status, field_path);
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
        absl::Status access = call->Authorize(v1::VERB_ADMIN, request.name());
        if (access.ok()) access = AuthorizeDeadLetters(request.options(), call);
        if (!access.ok()) return access;
        const absl::StatusOr<MapOptions> options =
            NewOptions(request.options());
        if (!options.ok()) return options.status();
        const MapOr map = registry_->Create(request.name(), *options);
        if (map.ok()) {
          SetNamespace(map->get(), clock_->NowUs(),
                       response->mutable_namespace_());
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
            call->Authorize(v1::VERB_READ, request.name());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.name());
        if (map.ok()) {
          SetNamespace(map->get(), clock_->NowUs(),
                       response->mutable_namespace_());
        }
        return map.status();
      });
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
      SetNamespace(map.get(), clock_->NowUs(), response->add_namespaces());
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
      gate_, methods::kUpdateNamespace, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        absl::Status access = call->Authorize(v1::VERB_ADMIN, request.name());
        if (access.ok()) access = AuthorizeDeadLetters(request.options(), call);
        if (!access.ok()) return access;
        const MapOr map =
            registry_->Update(request.name(), [&](MapOptions* options) {
              return ChangeOptions(request.options(), options);
            });
        if (map.ok()) {
          SetNamespace(map->get(), clock_->NowUs(),
                       response->mutable_namespace_());
          observer_({.event = "namespace_updated",
                     .name = request.name(),
                     .options = &request.options()});
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
            call->Authorize(v1::VERB_ADMIN, request.name());
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
            call->Authorize(v1::VERB_ADMIN, request.name());
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

grpc::ServerUnaryReactor* NamespaceService::GetServer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::GetServerRequest;
  using Response = v1::GetServerResponse;
  return Answer<Request, Response>(
      gate_, methods::kGetServer, context, bytes, answer, FieldPath,
      [&](Call* call, const Request& /*request*/,
          Response* response) -> absl::Status {
        const absl::Status access = call->AuthorizeAnywhere();
        if (!access.ok()) return access;
        describe_server_(response);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::CreateGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::CreateGroupRequest;
  using Response = v1::CreateGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kCreateGroup, context, bytes, answer, GroupFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        GroupOptions options;
        absl::Status status = ApplyOptions(request.options(), &options);
        if (!status.ok()) return status;
        const MapOr map = registry_->Find(request.namespace_());
        if (!map.ok()) return map.status();
        const auto start = request.from_earliest() ? ExpiryLog::Start::kEarliest
                                                   : ExpiryLog::Start::kNow;
        const GroupOr group = (*map)->groups().Create(
            request.name(), options, start, clock_->NowUs(), call->Principal());
        if (!group.ok()) return group.status();
        SetGroup((*map)->name(), **group, response->mutable_group());
        observer_({.event = "group_created",
                   .name = request.namespace_(),
                   .group = request.name(),
                   .options = &response->group().options()});
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::ListGroups(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::ListGroupsRequest;
  using Response = v1::ListGroupsResponse;
  return Answer<Request, Response>(
      gate_, methods::kListGroups, context, bytes, answer, GroupFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(v1::VERB_WATCH, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        if (map.ok()) {
          for (const auto& group : (*map)->groups().List()) {
            SetGroup((*map)->name(), *group, response->add_groups());
          }
        }
        return map.status();
      });
}

grpc::ServerUnaryReactor* NamespaceService::UpdateGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::UpdateGroupRequest;
  using Response = v1::UpdateGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kUpdateGroup, context, bytes, answer, GroupFieldPath,
      [&](Call* call, const Request& request,
          Response* response) -> absl::Status {
        const absl::Status access =
            call->Authorize(v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        if (!map.ok()) return map.status();
        const GroupOr group =
            (*map)->groups().Update(request.name(), [&](GroupOptions* options) {
              return ApplyOptions(request.options(), options);
            });
        if (!group.ok()) return group.status();
        SetGroup((*map)->name(), **group, response->mutable_group());
        observer_({.event = "group_updated",
                   .name = request.namespace_(),
                   .group = request.name(),
                   .options = &request.options()});
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::DeleteGroup(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
    grpc::ByteBuffer* answer) {
  using Request = v1::DeleteGroupRequest;
  using Response = v1::DeleteGroupResponse;
  return Answer<Request, Response>(
      gate_, methods::kDeleteGroup, context, bytes, answer, GroupFieldPath,
      [&](Call* call, const Request& request,
          Response* /*response*/) -> absl::Status {
        const absl::Status access =
            call->Authorize(v1::VERB_ADMIN, request.namespace_());
        if (!access.ok()) return access;
        const MapOr map = registry_->Find(request.namespace_());
        const absl::Status status =
            map.ok() ? (*map)->groups().Delete(request.name()) : map.status();
        if (status.ok()) {
          observer_({.event = "group_deleted",
                     .name = request.namespace_(),
                     .group = request.name()});
        }
        return status;
      });
}

}  // namespace timecache
