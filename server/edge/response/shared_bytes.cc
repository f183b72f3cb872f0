#include "server/edge/response/shared_bytes.h"

#include <utility>

namespace timecache::server {

struct SharedBytes::Reference {
  std::shared_ptr<SharedBytes> shared;
  ResponseAccountRef account;
  ResponseAccount::Holding holding;
  Reference* before = nullptr;
  Reference* after = nullptr;
};

grpc::Slice SharedBytes::Share(std::shared_ptr<SharedBytes> shared,
                               ResponseAccount* account) {
  SharedBytes* const bytes = shared.get();
  auto* const reference = new Reference{std::move(shared),
                                        ResponseAccountRef(account),
                                        {bytes->cost_bytes_, /*patient=*/true}};
  if (account != nullptr) bytes->Add(reference);
  // gRPC's API takes a mutable pointer, and does not write.
  return grpc::Slice(const_cast<char*>(bytes->bytes_.data()),
                     bytes->bytes_.size(), &FreeReference, reference);
}

// gRPC's, on any of its threads and under its locks.
void SharedBytes::FreeReference(void* memory) {
  const std::unique_ptr<Reference> reference(static_cast<Reference*>(memory));
  if (reference->account) reference->shared->Remove(reference.get());
}

void SharedBytes::Add(Reference* reference) {
  absl::MutexLock lock(&mu_);
  reference->before = last_;
  (last_ != nullptr ? last_->after : first_) = reference;
  last_ = reference;
  if (first_ == reference) reference->account->Hold(&reference->holding);
}

void SharedBytes::Remove(Reference* reference) {
  absl::MutexLock lock(&mu_);
  const bool was_first = first_ == reference;
  (reference->before != nullptr ? reference->before->after : first_) =
      reference->after;
  (reference->after != nullptr ? reference->after->before : last_) =
      reference->before;
  if (!was_first) return;
  reference->account->Drop(&reference->holding);
  if (first_ != nullptr) first_->account->Hold(&first_->holding);
}

}  // namespace timecache::server
