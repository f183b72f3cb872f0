#include "server/service/batch.h"

#include <utility>

#include "server/service/batch_response.h"

namespace timecache {
namespace {

// Results keep the memory of their values for the next request, up to this.
constexpr size_t kMaxKeptBytes = size_t{256} << 10;

}  // namespace

void Batch::Run(Store* store, const grpc::ByteBuffer& request, Done done) {
  done_ = std::move(done);
  if (absl::Status status = request_.Decode(request); !status.ok()) {
    return Finish(std::move(status));
  }
  results_.resize(request_.operations().size());
  store->Execute(request_.name(), request_.operations(),
                 absl::MakeSpan(results_),
                 [this](absl::Status status) { Finish(std::move(status)); });
}

void Batch::Finish(absl::Status status) {
  grpc::ByteBuffer response;
  if (status.ok()) {
    response = EncodeResponse(request_, results_);
    if (response.Length() > kMaxKeptBytes) results_.clear();
  }
  // What it does may be the end of this.
  Done done = std::move(done_);
  done(std::move(status), std::move(response));
}

}  // namespace timecache
