#include "server/edge/response/shared_bytes.h"

#include <utility>

namespace timecache::server {

// What a slice keeps.
class SharedBytes::Reference {
 public:
  Reference(std::shared_ptr<SharedBytes> shared, ResponseAccount* account)
      : shared_(std::move(shared)) {
    if (account != nullptr) holder_ = shared_->Add(account->shared_from_this());
  }
  ~Reference() {
    if (holder_.has_value()) shared_->Remove(*holder_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

 private:
  const std::shared_ptr<SharedBytes> shared_;
  std::optional<Holders::iterator> holder_;
};

grpc::Slice SharedBytes::Share(std::shared_ptr<SharedBytes> shared,
                               ResponseAccount* account) {
  const absl::string_view bytes = shared->bytes_;
  // gRPC's API takes a mutable pointer, and does not write. It frees the
  // reference on any of its threads and under its locks.
  return grpc::Slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* reference) { delete static_cast<Reference*>(reference); },
      new Reference(std::move(shared), account));
}

SharedBytes::Holders::iterator SharedBytes::Add(ResponseAccountRef holder) {
  absl::MutexLock lock(&mu_);
  if (holders_.empty()) held_.emplace(holder, cost_bytes_, /*patient=*/true);
  return holders_.insert(holders_.end(), std::move(holder));
}

void SharedBytes::Remove(Holders::iterator holder) {
  absl::MutexLock lock(&mu_);
  const bool counted = holder == holders_.begin();
  holders_.erase(holder);
  if (!counted) return;
  held_.reset();
  if (!holders_.empty()) {
    held_.emplace(holders_.front(), cost_bytes_, /*patient=*/true);
  }
}

}  // namespace timecache::server
