#include "server/rpc/admin/namespace_service.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_namespace.h"
#include "server/api/update_mask.h"
#include "server/base/error.h"
#include "server/rpc/admin/list_query.h"
#include "server/rpc/call/answer.h"

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
  return ApplyUpdateMask(request.update_mask(), request.namespace_().options(),
                         defaults, {"num_shards", "durability"}, changes);
}

}  // namespace

grpc::ServerUnaryReactor* NamespaceService::CreateNamespace(Context* context,
                                                            const Bytes* bytes,
                                                            Bytes* answer) {
  return Answer<v1::CreateNamespaceRequest, v1::CreateNamespaceResponse>(
      gate_, methods::kCreateNamespace, context, bytes, answer,
      NamespaceFieldPath, [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        Call* const call = &unary->call();
        absl::Status access =
            call->Authorize(config::v1::VERB_ADMIN, request.name());
        if (access.ok()) access = AuthorizeDeadLetters(request.options(), call);
        if (!access.ok()) return access;
        const absl::StatusOr<NamespaceOptions> options =
            NewOptions(request.options());
        if (!options.ok()) return options.status();
        store_->CreateNamespace(
            request.name(), *options,
            FinishWith(unary, [this, unary](const NamespaceInfo& created) {
              v1::Namespace* const to = unary->response().mutable_namespace_();
              SetNamespace(created, to);
              SetWarnings(created, &unary->response());
              observer_({.event = "namespace_created",
                         .name = unary->request().name(),
                         .options = &to->options(),
                         .warnings = created.warnings});
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::GetNamespace(Context* context,
                                                         const Bytes* bytes,
                                                         Bytes* answer) {
  return Answer<v1::GetNamespaceRequest, v1::GetNamespaceResponse>(
      gate_, methods::kGetNamespace, context, bytes, answer, NamespaceFieldPath,
      [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_READ, request.name());
        if (!access.ok()) return access;
        store_->GetNamespace(
            request.name(), request.include_statistics(),
            FinishWith(unary, [unary](const NamespaceInfo& found) {
              SetNamespace(found, unary->response().mutable_namespace_());
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::ListNamespaces(Context* context,
                                                           const Bytes* bytes,
                                                           Bytes* answer) {
  return Answer<v1::ListNamespacesRequest, v1::ListNamespacesResponse>(
      gate_, methods::kListNamespaces, context, bytes, answer,
      NamespaceListFieldPath, [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access = unary->call().Identify();
        if (!access.ok()) return access;
        absl::StatusOr<ListQuery> query =
            ToListQuery(request, kDefaultPageNamespaces, kMaxPageNamespaces);
        if (!query.ok()) return query.status();
        query->visible = [unary](absl::string_view name) {
          return unary->call().MaySee(name);
        };
        store_->ListNamespaces(
            *std::move(query),
            FinishWith(unary, [unary](const Page<NamespaceInfo>& page) {
              SetPage(page, &unary->response());
            }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::UpdateNamespace(Context* context,
                                                            const Bytes* bytes,
                                                            Bytes* answer) {
  return Answer<v1::UpdateNamespaceRequest, v1::UpdateNamespaceResponse>(
      gate_, methods::kUpdateNamespace, context, bytes, answer,
      NamespaceUpdateFieldPath, [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        Call* const call = &unary->call();
        const std::string& name = request.namespace_().name();
        absl::Status status = call->Authorize(config::v1::VERB_ADMIN, name);
        if (!status.ok()) return status;
        const auto changes = std::make_shared<v1::NamespaceOptions>();
        status = ToChanges(request, changes.get());
        if (status.ok()) status = AuthorizeDeadLetters(*changes, call);
        if (!status.ok()) return status;
        // The default is never less than the ttl.
        const bool default_max_ttl =
            changes->has_max_ttl() &&
            !request.namespace_().options().has_max_ttl();
        store_->UpdateNamespace(
            name,
            [changes, default_max_ttl](NamespaceOptions* options) {
              absl::Status changed = ChangeOptions(*changes, options);
              if (default_max_ttl) {
                options->max_ttl_us =
                    std::max(options->max_ttl_us, options->ttl_us);
              }
              return changed;
            },
            FinishWith(
                unary, [this, unary, changes](const NamespaceInfo& updated) {
                  SetNamespace(updated, unary->response().mutable_namespace_());
                  SetWarnings(updated, &unary->response());
                  observer_({.event = "namespace_updated",
                             .name = updated.name,
                             .options = changes.get(),
                             .warnings = updated.warnings});
                }));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::DeleteNamespace(Context* context,
                                                            const Bytes* bytes,
                                                            Bytes* answer) {
  return Answer<v1::DeleteNamespaceRequest, v1::DeleteNamespaceResponse>(
      gate_, methods::kDeleteNamespace, context, bytes, answer,
      NamespaceFieldPath, [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_ADMIN, request.name());
        if (!access.ok()) return access;
        store_->DeleteNamespace(
            request.name(), [this, unary](const absl::Status& status) {
              if (status.ok()) {
                observer_({.event = "namespace_deleted",
                           .name = unary->request().name()});
              }
              unary->Finish(status);
            });
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* NamespaceService::RotateNamespace(Context* context,
                                                            const Bytes* bytes,
                                                            Bytes* answer) {
  return Answer<v1::RotateNamespaceRequest, v1::RotateNamespaceResponse>(
      gate_, methods::kRotateNamespace, context, bytes, answer,
      NamespaceFieldPath, [this](const auto& unary) -> absl::Status {
        const auto& request = unary->request();
        const absl::Status access =
            unary->call().Authorize(config::v1::VERB_ADMIN, request.name());
        if (!access.ok()) return access;
        store_->RotateNamespace(
            request.name(), FinishWith(unary, [this, unary](int64_t died) {
              unary->response().set_entries(static_cast<uint64_t>(died));
              observer_({.event = "namespace_rotated",
                         .name = unary->request().name(),
                         .entries = died});
            }));
        return absl::OkStatus();
      });
}

}  // namespace timecache::server
