#include "timecache/client.h"

#include <stop_token>
#include <utility>

#include "absl/strings/str_join.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/bounded_channel.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "timecache/channel.h"
#include "timecache/operation.h"

namespace timecache {

Client::Client(const std::string& address, ClientOptions options)
    : options_(std::move(options)) {
  auto client = Make(address, ChannelOptions(), options_);
  core_ = client.ok() ? client->core_
                      : std::make_shared<Core>(
                            std::vector<std::string>{address},
                            MakeChannel(address), nullptr, client.status());
}

Client::Client(const std::vector<std::string>& addresses, ClientOptions options)
    : Client(absl::StrJoin(addresses, ","), std::move(options)) {}

Client::Client(std::shared_ptr<grpc::Channel> channel, ClientOptions options)
    : options_(std::move(options)),
      core_(std::make_shared<Core>(std::move(channel))) {}

Client::Client(std::shared_ptr<Core> core, ClientOptions options)
    : options_(std::move(options)), core_(std::move(core)) {}

absl::StatusOr<Client> Client::Make(const std::string& address,
                                    const ChannelOptions& channel,
                                    ClientOptions options) {
  absl::StatusOr<std::vector<std::string>> addresses = SplitAddresses(address);
  if (!addresses.ok()) return addresses.status();
  for (size_t i = 1; i < addresses->size(); ++i) {
    absl::Status status = CheckTokenTo((*addresses)[i], channel);
    if (!status.ok()) return status;
  }
  auto first = addresses->size() == 1
                   ? MakeChannel(address, channel)
                   : MakeBoundedChannel(addresses->front(), channel);
  if (!first.ok()) return first.status();
  return Client(std::make_shared<Core>(*std::move(addresses), *std::move(first),
                                       [channel](const std::string& other) {
                                         return MakeBoundedChannel(other,
                                                                   channel);
                                       }),
                std::move(options));
}

absl::StatusOr<Client> Client::Make(const std::vector<std::string>& addresses,
                                    const ChannelOptions& channel,
                                    ClientOptions options) {
  return Make(absl::StrJoin(addresses, ","), channel, std::move(options));
}

const std::shared_ptr<grpc::Channel>& Client::channel() const {
  return core_->endpoints.current().channel;
}

const std::string& Client::address() const {
  return core_->endpoints.current().address;
}

Client Client::In(std::string_view ns) const {
  Client client = *this;
  client.options_.default_namespace = std::string(ns);
  return client;
}

absl::StatusOr<PutResult> Client::Put(std::string_view key,
                                      std::string_view value,
                                      const PutOptions& options,
                                      const CallOptions& call) const {
  return core_->Apply(options_, kPut, Operation::Put(key, value, options),
                      call);
}

absl::StatusOr<std::optional<Entry>> Client::Get(
    std::string_view key, const GetOptions& options,
    const CallOptions& call) const {
  return core_->Apply(options_, kGet, Operation::Get(key, options), call);
}

absl::StatusOr<RemoveResult> Client::Remove(std::string_view key,
                                            const RemoveOptions& options,
                                            const CallOptions& call) const {
  return core_->Apply(options_, kRemove, Operation::Remove(key, options), call);
}

absl::StatusOr<bool> Client::Contains(std::string_view key,
                                      const ContainsOptions& options,
                                      const CallOptions& call) const {
  return core_->Apply(options_, kContains, Operation::Contains(key, options),
                      call);
}

absl::StatusOr<SizeResult> Client::Size(const CallOptions& call) const {
  v1::SizeRequest request;
  request.set_namespace_(options_.default_namespace);
  return core_->Send(options_, kSize, request, call);
}

absl::StatusOr<std::optional<uint64_t>> Client::Touch(
    std::string_view key, const TouchOptions& options,
    const CallOptions& call) const {
  return core_->Apply(options_, kTouch, Operation::Touch(key, options), call);
}

absl::StatusOr<AppendResult> Client::Append(std::string_view key,
                                            std::string_view value,
                                            const AppendOptions& options,
                                            const CallOptions& call) const {
  return core_->Apply(options_, kAppend, Operation::Append(key, value, options),
                      call);
}

absl::StatusOr<CombineResult> Client::Combine(std::string_view key,
                                              Combination combination,
                                              int64_t operand,
                                              const CombineOptions& options,
                                              const CallOptions& call) const {
  return core_->Apply(options_, kCombine,
                      Operation::Combine(key, combination, operand, options),
                      call);
}

absl::StatusOr<GatherResult> Client::Gather(std::string_view key,
                                            std::string_view part,
                                            std::string_view value,
                                            const GatherOptions& options,
                                            const CallOptions& call) const {
  return core_->Apply(options_, kGather,
                      Operation::Gather(key, part, value, options), call);
}

namespace {

// Visits the pages of one call, and keeps the position behind each in
// `request`. Sets `ended` where the visitor ends the scan.
grpc::Status ScanPages(v1::TimeCacheService::Stub& cache,
                       grpc::ClientContext& context,
                       absl::FunctionRef<bool(Entry entry)> visit,
                       v1::ScanRequest& request, bool& progress, bool& ended) {
  const auto reader = cache.Scan(&context, request);
  v1::ScanResponse page;
  while (reader->Read(&page)) {
    progress = true;
    request.set_position(page.position());
    for (v1::Entry& entry : *page.mutable_entries()) {
      if (visit(FromProto(std::move(entry)))) continue;
      ended = true;
      context.TryCancel();
      reader->Finish();  // CANCELLED, as asked.
      return grpc::Status::OK;
    }
  }
  return reader->Finish();
}

}  // namespace

absl::Status Client::Scan(const ScanOptions& options,
                          absl::FunctionRef<bool(Entry entry)> visit,
                          const CallOptions& call) const {
  v1::ScanRequest request;
  request.set_namespace_(options_.default_namespace);
  request.set_key_prefix(options.key_prefix);
  request.set_keys_only(options.keys_only);
  request.set_max_message_bytes(
      options.max_message_bytes.value_or(kMaxMessageBytes));
  CallOptions scan = call;
  if (!scan.timeout) scan.timeout = options.timeout;
  const CallPlan plan(options_, scan, Repeat::kSafe);
  // An older server sends no positions: the scan cannot go on then.
  bool visited = false;
  bool ended = false;
  grpc::Status last;
  for (;;) {
    bool progress = false;
    const absl::Status status =
        Attempt(core_->endpoints, plan,
                [&](Endpoint& endpoint, grpc::ClientContext& context) {
                  if (visited && request.position().empty()) return last;
                  last = ScanPages(endpoint.cache, context, visit, request,
                                   progress, ended);
                  visited |= progress;
                  return last;
                });
    // Also where the server has waited too long for this client to read.
    const bool goes_on =
        progress && !request.position().empty() &&
        (IsConnectionLost(status) || absl::IsDeadlineExceeded(status)) &&
        SteadyNow() < plan.deadline();
    if (ended || !goes_on || call.cancellation.stop_requested()) return status;
  }
}

absl::StatusOr<ScanResult> Client::ScanUpTo(size_t entries_max,
                                            const ScanOptions& options,
                                            const CallOptions& call) const {
  ScanResult result;
  absl::Status status = Scan(
      options,
      [&](Entry entry) {
        if (result.entries.size() == entries_max) {
          result.more = true;
          return false;
        }
        result.entries.push_back(std::move(entry));
        return true;
      },
      call);
  if (!status.ok()) return status;
  return result;
}

}  // namespace timecache
