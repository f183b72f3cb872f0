#include "client/cpp/src/owners/owner_map.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/rpc/call.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// Asked again, the server says the same for as long as it is set up so.
bool IsRefusal(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) || absl::IsUnimplemented(why) ||
         absl::IsPermissionDenied(why);
}

// Whether the server has said nothing of the namespace: what was known may hold.
bool IsSilence(const absl::Status& why) {
  return IsConnectionLost(why) || absl::IsDeadlineExceeded(why);
}

}  // namespace

OwnerMap::Found OwnerMap::Find(absl::string_view ns, SteadyTime now) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return {nullptr, true};
  const Namespace& of = found->second;
  return {of.owners, !of.is_asked && now >= of.due_at};
}

bool OwnerMap::Begin(absl::string_view ns, SteadyTime now) {
  absl::MutexLock lock(&mu_);
  auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) {
    if (namespaces_.size() == kNamespacesMax) ForgetOldest();
    found = namespaces_.try_emplace(std::string(ns)).first;
  }
  Namespace& of = found->second;
  if (of.is_asked || now < of.due_at) return false;
  of.is_asked = true;
  of.asked_at = now;
  return true;
}

void OwnerMap::Learn(absl::string_view ns, std::shared_ptr<const Owners> owners,
                     SteadyTime now) {
  absl::MutexLock lock(&mu_);
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return;
  found->second.owners.swap(owners);
  Ended(found->second, kAnswerMaxAge, now);
}

void OwnerMap::Fail(absl::string_view ns, const absl::Status& why,
                    SteadyTime now) {
  absl::MutexLock lock(&mu_);
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return;
  if (!IsSilence(why)) found->second.owners.reset();
  Ended(found->second, IsRefusal(why) ? kRefusedPause : kFailedPause, now);
}

void OwnerMap::Doubt(absl::string_view ns) {
  absl::MutexLock lock(&mu_);
  const auto found = namespaces_.find(ns);
  if (found == namespaces_.end()) return;
  Namespace& of = found->second;
  of.is_doubted = of.is_asked;
  of.due_at = std::min(of.due_at, SteadyAfter(kDoubtPause, of.asked_at));
}

void OwnerMap::Ended(Namespace& of, absl::Duration pause, SteadyTime now) {
  of.is_asked = false;
  of.due_at = std::exchange(of.is_doubted, false)
                  ? SteadyAfter(kDoubtPause, of.asked_at)
                  : SteadyAfter(pause, now);
}

void OwnerMap::ForgetOldest() {
  namespaces_.erase(std::min_element(
      namespaces_.begin(), namespaces_.end(), [](const auto& a, const auto& b) {
        return a.second.asked_at < b.second.asked_at;
      }));
}

}  // namespace timecache
