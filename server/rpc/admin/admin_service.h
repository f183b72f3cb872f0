// What the services of namespaces and of groups have in common.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
#define TIMECACHED_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/error.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/change.h"
#include "server/rpc/admin/cluster_source.h"
#include "server/rpc/call/answer.h"

namespace timecache::server {

// As in AIP-158: the page that a List request asks for, of `default_size` items
// if unset, and never more than `max_size`. The token is the name after which
// the page starts. INVALID_ARGUMENT about page_size or page_token.
template <typename Request>
absl::StatusOr<ListQuery> ToListQuery(const Request& request, int default_size,
                                      int max_size) {
  if (request.page_size() < 0) {
    return InvalidField("page_size", absl::StrCat("must not be negative, as ",
                                                  request.page_size(), " is"));
  }
  ListQuery query;
  query.after = request.page_token();
  if (!query.after.empty() && !ValidateNamespaceName(query.after).ok()) {
    return InvalidField("page_token",
                        "must be the next_page_token of a previous page");
  }
  const int size =
      request.page_size() == 0 ? default_size : request.page_size();
  query.most = static_cast<size_t>(std::min(size, max_size));
  query.include_statistics = request.include_statistics();
  return query;
}

// The namespace that a request is about; empty for a list of all.
template <typename Request>
absl::string_view NamespaceOf(const Request& request) {
  if constexpr (requires { request.group(); }) {
    return request.group().namespace_();
  } else if constexpr (requires { request.namespace_().name(); }) {
    return request.namespace_().name();
  } else if constexpr (requires { request.namespace_(); }) {
    return request.namespace_();
  } else if constexpr (requires { request.name(); }) {
    return request.name();
  }
  return "";
}

// What handlers work on.
struct Admin {
  // Not owned.
  Store* store;
  AdminObserver observer;
  // Of a namespace that is created without num_partitions.
  int default_partitions = 1;
  // Null: each call is served here, or not at all.
  ClusterSource::OwnersOf owners_of = nullptr;
};

template <typename Request, typename Response>
using SharedCall = std::shared_ptr<UnaryCall<Request, Response>>;

// `Base` is the generated service.
template <typename Base>
class AdminService : public RawService<Base> {
 protected:
  // Calls the store, whose completion ends the call. An error ends it at once.
  template <typename Request, typename Response>
  using Handle = absl::Status (*)(const Admin& admin,
                                  const SharedCall<Request, Response>& call);

  // None is owned; all must outlive the service and its calls.
  AdminService(const CallGate* gate, Admin admin, CountedCalls* counted)
      : RawService<Base>(counted), gate_(*gate), admin_(std::move(admin)) {}

  // Calls of this method need the verb on their namespace; without one,
  // `handle` checks what its caller may. `field_path` as Call::End's.
  template <typename Request, typename Response>
  void ServeUnary(const Method& method, std::optional<config::v1::Verb> verb,
                  Call::FieldPath field_path,
                  Handle<Request, Response> handle) {
    const auto authorized = [=,
                             this](const SharedCall<Request, Response>& call) {
      absl::Status status;
      if (verb.has_value()) {
        status = call->call().Authorize(*verb, NamespaceOf(call->request()));
      }
      return status.ok() ? handle(admin_, call) : status;
    };
    this->template Serve<UnaryHandler>(
        method, [=, this, &method](grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* bytes,
                                   grpc::ByteBuffer* answer) {
          return Answer<Request, Response>(gate_, method, context, bytes,
                                           answer, field_path, authorized);
        });
  }

 private:
  const CallGate& gate_;
  const Admin admin_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
