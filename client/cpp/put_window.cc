#include "client/cpp/put_window.h"

#include <algorithm>
#include <utility>

#include "client/cpp/call.h"
#include "client/cpp/requests.h"

namespace timecache::inline client {

struct PutWindow::Call {
  grpc::ClientContext context;
  v1::PutRequest request;
  v1::PutResponse response;
  grpc::Status status;
  size_t bytes;
  Done done;
};

PutWindow::PutWindow(const Client& client, size_t puts_in_flight_max)
    : options_(client.options()),
      puts_in_flight_max_(std::max<size_t>(puts_in_flight_max, 1)),
      stub_(v1::TimeCacheService::NewStub(client.channel())) {}

PutWindow::~PutWindow() { Flush(); }

void PutWindow::Put(std::string_view key, std::string_view value,
                    const PutOptions& options, Done done) {
  const std::string name(key);
  const size_t bytes = key.size() + value.size();
  {
    const auto has_room = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      if (keys_in_flight_.empty()) return true;
      return keys_in_flight_.size() < puts_in_flight_max_ &&
             bytes_in_flight_ + bytes <= kMaxBytesInFlight &&
             !keys_in_flight_.contains(name);
    };
    absl::MutexLock lock(&mu_, absl::Condition(&has_room));
    keys_in_flight_.insert(name);
    bytes_in_flight_ += bytes;
  }
  Call* call = new Call;
  call->request =
      MakePutRequest(options_.default_namespace, key, value, options);
  call->bytes = bytes;
  call->done = std::move(done);
  SetTimeout(options_.timeout, call->context);
  stub_->async()->Put(&call->context, &call->request, &call->response,
                      [this, call](grpc::Status status) {
                        call->status = std::move(status);
                        Finish(call);
                      });
}

void PutWindow::Finish(Call* call) {
  const std::unique_ptr<Call> owned(call);
  if (call->status.ok()) {
    call->done(MakePutResult(std::move(call->response)));
  } else {
    call->done(FromGrpcStatus(call->status));
  }
  // Last: once the key is out, the window may be destroyed.
  absl::MutexLock lock(&mu_);
  keys_in_flight_.erase(call->request.key());
  bytes_in_flight_ -= call->bytes;
}

void PutWindow::Flush() {
  const auto is_empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return keys_in_flight_.empty();
  };
  absl::MutexLock lock(&mu_, absl::Condition(&is_empty));
}

}  // namespace timecache::inline client
