#include "server/edge/access_file.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/ops/log.h"

namespace timecache::server {

absl::StatusOr<std::shared_ptr<AccessFile>> AccessFile::Open(
    const std::string& path, FileWatch* watch) {
  std::shared_ptr<AccessFile> file(new AccessFile(path));
  // Calls back at once.
  absl::Status status = watch->Add({path}, kInterval,
                                   [file](const FileWatch::Contents& contents) {
                                     file->OnContent(contents.front());
                                   });
  if (!status.ok()) return status;
  absl::MutexLock lock(&file->mu_);
  if (!file->last_.ok()) return file->last_;
  return file;
}

absl::StatusOr<std::shared_ptr<const Caller>> AccessFile::Authenticate(
    const Credentials& credentials) const {
  std::shared_ptr<const AccessRules> in_force = rules();
  absl::Status error;
  const Caller* const caller = in_force->Find(credentials, &error);
  if (caller == nullptr) return error;
  return std::shared_ptr<const Caller>(std::move(in_force), caller);
}

std::shared_ptr<const Caller> AccessFile::FindPrincipal(
    absl::string_view name) const {
  std::shared_ptr<const AccessRules> in_force = rules();
  const Caller* const caller = in_force->FindPrincipal(name);
  return std::shared_ptr<const Caller>(std::move(in_force), caller);
}

std::shared_ptr<const AccessRules> AccessFile::rules() const {
  absl::ReaderMutexLock lock(&mu_);
  return rules_;
}

void AccessFile::SetListener(std::function<void()> on_change) {
  absl::MutexLock lock(&listener_mu_);
  on_change_ = std::move(on_change);
}

AccessFileState AccessFile::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

void AccessFile::OnContent(const absl::StatusOr<std::string>& content) {
  const absl::Status status = Take(content);
  {
    absl::MutexLock lock(&mu_);
    last_ = status;
    state_.ok = status.ok();
    ++(status.ok() ? state_.succeeded : state_.failed);
    if (status.ok()) state_.loaded_at = absl::Now();
  }
  if (!status.ok()) {
    // At start the server reports the error itself, and ends.
    if (generation() == 0) return;
    Log(LogLevel::kError, "access_file_refused",
        {{"file", path_},
         {"error", status.message()},
         {"in_force", "the rules from before"}});
    return;
  }
  absl::MutexLock lock(&listener_mu_);
  if (on_change_ != nullptr) on_change_();
}

// Puts the rules in force.
absl::Status AccessFile::Take(const absl::StatusOr<std::string>& content) {
  if (!content.ok()) return content.status();
  auto rules = AccessRules::Parse(*content, path_);
  if (!rules.ok()) return rules.status();
  Log(LogLevel::kInfo, "access_file_loaded",
      {{"file", path_},
       {"principals", (*rules)->num_principals()},
       {"rules", (*rules)->num_rules()}});
  {
    // Swapped: the previous rules, if no other reference is left, are destroyed
    // after the lock is released.
    absl::MutexLock lock(&mu_);
    rules_.swap(*rules);
  }
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return absl::OkStatus();
}

}  // namespace timecache::server
