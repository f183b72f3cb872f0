#include "server/engine/server_account.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

ServerAccount::ServerAccount(const RegistryLimits& limits)
    : counts_(limits.max_entries > 0 || limits.max_bytes > 0),
      usage_(limits.max_entries, limits.max_bytes),
      limits_(limits) {}

absl::Status ServerAccount::SetLimits(const RegistryLimits& limits) {
  if (!counts_ && (limits.max_entries > 0 || limits.max_bytes > 0)) {
    return absl::FailedPreconditionError(
        "the server was started without max_entries and max_bytes, and does "
        "not count all namespaces: restart it");
  }
  absl::MutexLock lock(&mu_);
  limits_ = limits;
  usage_.SetLimits(limits.max_entries, limits.max_bytes);
  return absl::OkStatus();
}

RegistryLimits ServerAccount::limits() const {
  absl::ReaderMutexLock lock(&mu_);
  return limits_;
}

absl::Status ServerAccount::CheckNamespacesLocked() const {
  if (limits_.max_namespaces == 0 || namespaces_ < limits_.max_namespaces) {
    return absl::OkStatus();
  }
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, Reason::kMaxNamespaces,
      absl::StrCat("the server is at its limits.max_namespaces of ",
                   limits_.max_namespaces));
}

absl::Status ServerAccount::CheckNamespaces() const {
  absl::ReaderMutexLock lock(&mu_);
  return CheckNamespacesLocked();
}

absl::Status ServerAccount::AddNamespace() {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckNamespacesLocked();
  if (status.ok()) ++namespaces_;
  return status;
}

void ServerAccount::AddNamespaceAnyway() {
  absl::MutexLock lock(&mu_);
  ++namespaces_;
}

void ServerAccount::SubtractNamespaces(int count) {
  absl::MutexLock lock(&mu_);
  namespaces_ -= count;
}

int ServerAccount::namespaces() const {
  absl::ReaderMutexLock lock(&mu_);
  return namespaces_;
}

}  // namespace timecache::server
