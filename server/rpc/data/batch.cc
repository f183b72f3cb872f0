#include "server/rpc/data/batch.h"

#include <memory>
#include <utility>

#include "server/engine/store/atomic.h"
#include "server/rpc/call/request.h"
#include "server/rpc/data/batch_details.h"
#include "server/rpc/data/batch_response.h"
#include "server/rpc/data/plain_calls.h"

namespace timecache::server {
namespace {

// By the operations of a batch, whatever they are.
constexpr Verbs kNeededAtMost = {config::v1::VERB_READ, config::v1::VERB_WRITE};

// Whether nothing that comes on the stream could be answered now.
bool EndsStream(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status) ||
         absl::IsCancelled(status);
}

}  // namespace

void Batch::Run(Call* call, const Parts& parts, const grpc::ByteBuffer& request,
                ResponseAccount* account, Done done) {
  call_ = call;
  parts_ = parts;
  account_ = account;
  done_ = std::move(done);
  ran_independent_ = false;
  buffers_ = BatchBuffers<BatchRequest>::Take();
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
  call->set_operations(decoded.operations().size() + decoded.refused().size());
  ran_independent_ = answers_independent_ && decoded.independent();
  if (ran_independent_ && !call->observers().empty()) began_ns_ = Call::NowNs();
  call->set_reports_denials(!ran_independent_);
  absl::StatusOr<Verbs> verbs = call->VerbsIn(decoded.name());
  // A plain call says what its caller lacks.
  if (ran_independent_ && absl::IsPermissionDenied(verbs.status())) {
    verbs = Verbs();
  }
  if (!verbs.ok()) return Finish(verbs.status());
  if (!verbs->Contains(kNeededAtMost)) Deny(*verbs, call);
  buffers_->results.resize(decoded.operations().size());
  progress_ = BatchProgress();
  progress_.on_applied = on_applied_;
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
  // Whether the namespace exists is not for those to know who may do nothing.
  if (ran_independent_ && request.operations().empty()) {
    return Finish(absl::OkStatus());
  }
  if (request.atomic()) return ExecuteAtomic();
  parts_.store->Execute(
      request.name(), request.operations(), absl::MakeSpan(buffers_->results),
      &progress_, [this](const absl::Status& status) { EndTurn(status); });
}

// In one turn: it is bounded. Where an operation is refused by now, the others
// are not tried.
void Batch::ExecuteAtomic() {
  const BatchRequest& request = buffers_->request;
  const auto finish = [this](const absl::Status& status) { Finish(status); };
  if (request.refused().empty()) {
    return parts_.store->ExecuteAtomic(request.name(), request.operations(),
                                       absl::MakeSpan(buffers_->results),
                                       finish);
  }
  for (Result& result : buffers_->results) result.Clear();
  AbortOthers(absl::MakeSpan(buffers_->results));
  parts_.store->Execute(request.name(), {}, {}, finish);
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
  const auto error_of = [&](Verbs lacks) -> const absl::Status& {
    for (const auto& [verbs, error] : errors) {
      if (verbs == lacks) return error;
    }
    return errors.emplace_back(lacks, call->Deny(lacks, request.name())).second;
  };
  request.Refuse([&](const Operation& operation, size_t index) {
    const Verbs lacks = VerbsOf(operation).Without(has);
    if (lacks.empty()) return absl::OkStatus();
    const absl::Status& error = error_of(lacks);
    if (ran_independent_) {
      ReportPlainDenial(*call, request, index, operation.kind, error, lacks);
    }
    return error;
  });
}

void Batch::Finish(absl::Status status) {
  if (!status.ok() && ran_independent_ && !EndsStream(status)) {
    buffers_->request.Refuse(
        [&](const Operation&, size_t /*index*/) { return status; });
    buffers_->results.clear();
    status = absl::OkStatus();
  }
  grpc::ByteBuffer response;
  if (status.ok()) response = Answer();
  BatchBuffers<BatchRequest>::Give(std::move(buffers_));
  // It may destroy this.
  Done done = std::move(done_);
  done(status, response);
}

grpc::ByteBuffer Batch::Answer() {
  const BatchRequest& request = buffers_->request;
  const BatchDetails details(
      *call_, request.name(),
      request.operations().size() + request.refused().size());
  if (parts_.tails != nullptr && parts_.tails->any()) {
    parts_.tails->Observe(details, request.name(), request.operations(),
                          buffers_->results);
  }
  RefusalCount refused;
  grpc::ByteBuffer response = EncodeResponse(request, buffers_->results,
                                             &refused, account_, small_bytes_);
  refused.Count(*call_, details);
  if (ran_independent_ && !call_->observers().empty()) {
    ReportPlainCalls(*call_, request, buffers_->results,
                     (Call::NowNs() - began_ns_) / 1'000);
  }
  if (ran_independent_ && account_ != nullptr) {
    account_->use().AddCalls(details.Operations());
  }
  return response;
}

}  // namespace timecache::server
