#include "server/rpc/data/batch.h"

#include <memory>
#include <utility>

#include "server/rpc/call/request.h"
#include "server/rpc/data/batch_response.h"

namespace timecache::server {
namespace {

// By the operations of a batch, whatever they are.
constexpr Verbs kNeededAtMost = {config::v1::VERB_READ, config::v1::VERB_WRITE};

}  // namespace

void Batch::Run(Call* call, const Parts& parts, const grpc::ByteBuffer& request,
                ResponseAccount* account, Done done) {
  call_ = call;
  parts_ = parts;
  account_ = account;
  done_ = std::move(done);
  buffers_ = BatchBuffers::Take();
  BatchRequest& decoded = buffers_->request;
  absl::Status status = call->BeginRequest(request.Length());
  if (!status.ok()) return Finish(status);
  status = CheckRequestSize(request, "operations");
  if (status.ok()) {
    // A call may end without having sent a message.
    status = request.Valid()
                 ? decoded.Decode(request)
                 : MalformedRequest(v1::ExecuteRequest().GetTypeName());
  }
  if (!status.ok()) {
    // An unidentified caller gets no other error.
    const absl::Status known = call->Identify();
    return Finish(known.ok() ? status : known);
  }
  const absl::StatusOr<Verbs> verbs = call->VerbsIn(decoded.name());
  if (!verbs.ok()) return Finish(verbs.status());
  if (!verbs->Contains(kNeededAtMost)) Deny(*verbs, call);
  buffers_->results.resize(decoded.operations().size());
  progress_ = BatchProgress();
  if (account == nullptr || account->HasRoom()) return Execute();
  account->WhenRoom(
      [this](const absl::Status& room) {
        if (!room.ok()) return Finish(room);
        Execute();
      },
      request.Length());
}

void Batch::Execute() {
  const BatchRequest& request = buffers_->request;
  parts_.store->Execute(
      request.name(), request.operations(), absl::MakeSpan(buffers_->results),
      &progress_, [this](const absl::Status& status) { EndTurn(status); });
}

void Batch::EndTurn(const absl::Status& status) {
  if (!status.ok() || progress_.done) return Finish(status);
  if (call_->cancelled()) {
    return Finish(absl::CancelledError(
        "the call was cancelled, or its deadline has passed: some operations "
        "were applied"));
  }
  struct NextTurn final : FairExecutor::Task {
    explicit NextTurn(Batch* of) : batch(of) {}
    bool TakeTurn() override {
      batch->Execute();
      return false;
    }
    Batch* const batch;
  };
  parts_.executor->Add(buffers_->request.name(),
                       std::make_shared<NextTurn>(this));
}

// One error for all operations that lack the same permissions.
void Batch::Deny(Verbs has, Call* call) {
  std::vector<std::pair<Verbs, absl::Status>> errors;
  BatchRequest& request = buffers_->request;
  request.Refuse([&](const Operation& operation) -> absl::Status {
    const Verbs lacks = VerbsOf(operation).Without(has);
    if (lacks.empty()) return absl::OkStatus();
    for (const auto& [verbs, error] : errors) {
      if (verbs == lacks) return error;
    }
    return errors.emplace_back(lacks, call->Deny(lacks, request.name())).second;
  });
}

void Batch::Finish(const absl::Status& status) {
  grpc::ByteBuffer response;
  if (status.ok()) {
    RefusalCount refused;
    response = EncodeResponse(buffers_->request, buffers_->results, &refused,
                              account_, small_bytes_);
    refused.Count(*call_);
  }
  BatchBuffers::Give(std::move(buffers_));
  // It may destroy this.
  Done done = std::move(done_);
  done(status, response);
}

}  // namespace timecache::server
