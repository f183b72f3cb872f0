#include "client/cpp/client.h"

#include <iterator>
#include <utility>

#include "client/cpp/call.h"
#include "client/cpp/channel.h"
#include "client/cpp/convert.h"
#include "client/cpp/requests.h"
#include "client/cpp/update_mask.h"

namespace timecache::inline client {
namespace {

using Cache = v1::TimeCacheService::Stub;
using Namespaces = v1::NamespaceService::Stub;

template <typename Request>
Request NameRequest(std::string_view name) {
  Request request;
  request.set_name(std::string(name));
  return request;
}

}  // namespace

Client::Client(const std::string& address, ClientOptions options)
    : Client(MakeChannel(address), std::move(options)) {}

Client::Client(std::shared_ptr<grpc::Channel> channel, ClientOptions options)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      connection_(std::make_shared<Connection>(channel_)),
      cache_(v1::TimeCacheService::NewStub(channel_)),
      namespaces_(v1::NamespaceService::NewStub(channel_)),
      groups_(v1::GroupService::NewStub(channel_)),
      server_(v1::ServerService::NewStub(channel_)) {}

Client Client::In(std::string_view ns) const {
  Client client = *this;
  client.options_.default_namespace = std::string(ns);
  return client;
}

absl::StatusOr<PutResult> Client::Put(std::string_view key,
                                      std::string_view value,
                                      const PutOptions& options) const {
  auto response =
      Call(*connection_, *cache_, &Cache::Put,
           MakePutRequest(options_.default_namespace, key, value, options),
           options_.timeout);
  if (!response.ok()) return response.status();
  return PutResult{.version = response->version(),
                   .previous = TakePrevious(*response)};
}

absl::StatusOr<std::optional<Entry>> Client::Get(
    std::string_view key, const GetOptions& options) const {
  auto response = Call(*connection_, *cache_, &Cache::Get,
                       MakeGetRequest(options_.default_namespace, key, options),
                       options_.timeout);
  if (!response.ok()) return response.status();
  return TakeEntry(*response);
}

absl::StatusOr<RemoveResult> Client::Remove(
    std::string_view key, const RemoveOptions& options) const {
  auto response =
      Call(*connection_, *cache_, &Cache::Remove,
           MakeRemoveRequest(options_.default_namespace, key, options),
           options_.timeout);
  if (!response.ok()) return response.status();
  return RemoveResult{.removed = response->removed(),
                      .previous = TakePrevious(*response)};
}

absl::StatusOr<bool> Client::Contains(std::string_view key) const {
  auto response =
      Call(*connection_, *cache_, &Cache::Contains,
           KeyRequest<v1::ContainsRequest>(options_.default_namespace, key),
           options_.timeout);
  if (!response.ok()) return response.status();
  return response->contains();
}

absl::StatusOr<SizeResult> Client::Size() const {
  v1::SizeRequest request;
  request.set_namespace_(options_.default_namespace);
  auto response =
      Call(*connection_, *cache_, &Cache::Size, request, options_.timeout);
  if (!response.ok()) return response.status();
  return SizeResult{.entries = response->entries(), .bytes = response->bytes()};
}

absl::StatusOr<std::optional<uint64_t>> Client::Touch(
    std::string_view key, const TouchOptions& options) const {
  auto response =
      Call(*connection_, *cache_, &Cache::Touch,
           MakeTouchRequest(options_.default_namespace, key, options),
           options_.timeout);
  if (!response.ok()) return response.status();
  std::optional<uint64_t> version;
  if (response->touched()) version = response->version();
  return version;
}

absl::Status Client::Scan(const ScanOptions& options,
                          absl::FunctionRef<bool(Entry entry)> visit) const {
  v1::ScanRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_key_prefix(options.key_prefix);
  request.set_keys_only(options.keys_only);
  request.set_max_message_bytes(
      options.max_message_bytes.value_or(kMaxMessageBytes));
  grpc::ClientContext context;
  Begin(*connection_, options.timeout, context);
  auto reader = cache_->Scan(&context, request);
  v1::ScanResponse page;
  while (reader->Read(&page)) {
    for (v1::Entry& entry : *page.mutable_entries()) {
      if (visit(FromProto(std::move(entry)))) continue;
      context.TryCancel();
      reader->Finish();  // CANCELLED, as asked.
      return absl::OkStatus();
    }
  }
  return FromGrpcStatus(reader->Finish());
}

absl::StatusOr<ScanResult> Client::ScanUpTo(size_t entries_max,
                                            const ScanOptions& options) const {
  ScanResult result;
  absl::Status status = Scan(options, [&](Entry entry) {
    if (result.entries.size() == entries_max) {
      result.more = true;
      return false;
    }
    result.entries.push_back(std::move(entry));
    return true;
  });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<v1::Namespace> Client::CreateNamespace(
    std::string_view name, const v1::NamespaceOptions& options) const {
  auto request = NameRequest<v1::CreateNamespaceRequest>(name);
  *request.mutable_options() = options;
  auto response = Call(*connection_, *namespaces_, &Namespaces::CreateNamespace,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_namespace_());
}

absl::StatusOr<v1::Namespace> Client::GetNamespace(
    std::string_view name, const DescribeOptions& describe) const {
  auto request = NameRequest<v1::GetNamespaceRequest>(name);
  request.set_include_statistics(describe.include_statistics);
  auto response = Call(*connection_, *namespaces_, &Namespaces::GetNamespace,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_namespace_());
}

absl::StatusOr<std::vector<v1::Namespace>> Client::ListNamespaces(
    const DescribeOptions& describe) const {
  std::vector<v1::Namespace> all;
  v1::ListNamespacesRequest request;
  request.set_include_statistics(describe.include_statistics);
  do {
    auto page = Call(*connection_, *namespaces_, &Namespaces::ListNamespaces,
                     request, options_.timeout);
    if (!page.ok()) return page.status();
    std::move(page->mutable_namespaces()->begin(),
              page->mutable_namespaces()->end(), std::back_inserter(all));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Namespace> Client::UpdateNamespace(
    std::string_view name, const v1::NamespaceOptions& options,
    const std::vector<std::string>& to_default) const {
  v1::UpdateNamespaceRequest request;
  request.mutable_namespace_()->set_name(std::string(name));
  *request.mutable_namespace_()->mutable_options() = options;
  SetUpdateMask(options, to_default, request);
  auto response = Call(*connection_, *namespaces_, &Namespaces::UpdateNamespace,
                       request, options_.timeout);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_namespace_());
}

absl::Status Client::DeleteNamespace(std::string_view name) const {
  return Call(*connection_, *namespaces_, &Namespaces::DeleteNamespace,
              NameRequest<v1::DeleteNamespaceRequest>(name), options_.timeout)
      .status();
}

absl::StatusOr<uint64_t> Client::RotateNamespace(std::string_view name) const {
  auto response =
      Call(*connection_, *namespaces_, &Namespaces::RotateNamespace,
           NameRequest<v1::RotateNamespaceRequest>(name), options_.timeout);
  if (!response.ok()) return response.status();
  return response->entries();
}

absl::StatusOr<v1::GetServerResponse> Client::GetServer() const {
  return Call(*connection_, *server_, &v1::ServerService::Stub::GetServer,
              v1::GetServerRequest(), options_.timeout);
}

}  // namespace timecache::inline client
