#include "timecache/client.h"

#include <utility>

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/channel.h"

namespace timecache::inline client {
namespace {

using Cache = v1::TimeCacheService::Stub;
}  // namespace

Client::Client(const std::string& address, ClientOptions options)
    : Client(MakeChannel(address), std::move(options)) {}

Client::Client(std::shared_ptr<grpc::Channel> channel, ClientOptions options)
    : options_(std::move(options)),
      core_(std::make_shared<Core>(std::move(channel))) {}

const std::shared_ptr<grpc::Channel>& Client::channel() const {
  return core_->channel;
}

Client Client::In(std::string_view ns) const {
  Client client = *this;
  client.options_.default_namespace = std::string(ns);
  return client;
}

absl::StatusOr<PutResult> Client::Put(std::string_view key,
                                      std::string_view value,
                                      const PutOptions& options) const {
  auto response =
      Call(core_->connection, core_->cache, &Cache::Put,
           MakePutRequest(options_.default_namespace, key, value, options),
           options_.timeout);
  if (!response.ok()) return response.status();
  return PutResult{.version = response->version(),
                   .previous = TakePrevious(*response)};
}

absl::StatusOr<std::optional<Entry>> Client::Get(
    std::string_view key, const GetOptions& options) const {
  auto response = Call(core_->connection, core_->cache, &Cache::Get,
                       MakeGetRequest(options_.default_namespace, key, options),
                       options_.timeout);
  if (!response.ok()) return response.status();
  return TakeEntry(*response);
}

absl::StatusOr<RemoveResult> Client::Remove(
    std::string_view key, const RemoveOptions& options) const {
  auto response =
      Call(core_->connection, core_->cache, &Cache::Remove,
           MakeRemoveRequest(options_.default_namespace, key, options),
           options_.timeout);
  if (!response.ok()) return response.status();
  return RemoveResult{.removed = response->removed(),
                      .previous = TakePrevious(*response)};
}

absl::StatusOr<bool> Client::Contains(std::string_view key) const {
  auto response =
      Call(core_->connection, core_->cache, &Cache::Contains,
           KeyRequest<v1::ContainsRequest>(options_.default_namespace, key),
           options_.timeout);
  if (!response.ok()) return response.status();
  return response->contains();
}

absl::StatusOr<SizeResult> Client::Size() const {
  v1::SizeRequest request;
  request.set_namespace_(options_.default_namespace);
  auto response = Call(core_->connection, core_->cache, &Cache::Size, request,
                       options_.timeout);
  if (!response.ok()) return response.status();
  return SizeResult{.entries = response->entries(), .bytes = response->bytes()};
}

absl::StatusOr<std::optional<uint64_t>> Client::Touch(
    std::string_view key, const TouchOptions& options) const {
  auto response =
      Call(core_->connection, core_->cache, &Cache::Touch,
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
  Begin(core_->connection, options.timeout, context);
  auto reader = core_->cache.Scan(&context, request);
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

}  // namespace timecache::inline client
