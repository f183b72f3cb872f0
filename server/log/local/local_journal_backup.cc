// LocalJournal::OpenBackup.

#include <utility>

#include "server/base/failpoint.h"
#include "server/log/local/local_journal.h"

namespace timecache::server {

std::unique_ptr<JournalBackup> LocalJournal::OpenBackup() {
  JournalBackup::Contents contents;
  contents.identity = writer_.identity();
  std::list<uint64_t>::iterator pin;
  {
    absl::MutexLock lock(&mu_);
    contents.segments.assign(
        segments_.begin() + static_cast<ptrdiff_t>(UnneededSegments()),
        segments_.end());
    contents.trim.first = first_;
    contents.end = end_;
    pins_.push_back(contents.segments.front().number);
    pin = std::prev(pins_.end());
  }
  Failpoint("backup.begin");
  return std::make_unique<JournalBackup>(
      files_, directory_, std::move(contents), [this, pin](uint64_t segment) {
        absl::MutexLock lock(&mu_);
        if (segment == JournalBackup::kNone) {
          pins_.erase(pin);
        } else {
          *pin = segment;
        }
        if (TrimmedSegments() == 0) return;
        trim_ = true;
        work_.Signal();
      });
}

}  // namespace timecache::server
