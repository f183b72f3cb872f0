#include "server/peer/forwarding_store.h"

#include "server/base/error.h"

namespace timecache::server {

// What the owner itself is asked costs no more than the question.
ForwardingStore::Choice ForwardingStore::AtOnce(const About& /*about*/) {
  return {.store = check_service_().ok() ? &own_ : nullptr};
}

void ForwardingStore::Next(std::shared_ptr<Call> call) {
  ++call->tries;
  const absl::Status serves = check_service_();
  if (serves.ok()) return call->PassTo(&own_);
  const ErrorMetadata metadata = MetadataOf(serves);
  const auto owner = metadata.find("owner_address");
  if (owner == metadata.end() || owner->second == own_address_) {
    return TryLater(std::move(call), serves);
  }
  call->PassTo(peers_.At(owner->second));
}

bool ForwardingStore::Again(const std::shared_ptr<Call>& call,
                            const absl::Status& error) {
  if (ReasonOf(error) != Reason::kNotOwner) return false;
  TryLater(call, error);
  return true;
}

void ForwardingStore::TryLater(std::shared_ptr<Call> call,
                               const absl::Status& error) {
  if (call->tries >= kMaxTries) {
    // Where the caller may ask next: as a node says that does not forward.
    const absl::Status serves = check_service_();
    return call->Fail(serves.ok() ? error : serves);
  }
  peers_.After(kLookAgain, [this, call = std::move(call)] { Next(call); });
}

void ForwardingStore::Execute(absl::string_view name,
                              absl::Span<const Operation> operations,
                              absl::Span<Result> results,
                              BatchProgress* progress, Done done) {
  if (progress == nullptr || progress->reached == 0) {
    return PassingStore::Execute(name, operations, results, progress,
                                 std::move(done));
  }
  if (check_service_().ok()) {
    return own_.Execute(name, operations, results, progress, std::move(done));
  }
  done(OwnershipLost());
}

}  // namespace timecache::server
