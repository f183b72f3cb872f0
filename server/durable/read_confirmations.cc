#include "server/durable/read_confirmations.h"

#include <utility>

#include "server/durable/map_change_log.h"

namespace timecache::server {

void ReadConfirmations::Wait(ChangeLog::Done done) {
  bool asks = false;
  {
    absl::MutexLock lock(&mu_);
    if (answers_ != nullptr && asked_.size() + next_.size() < kMaxWaiting) {
      asks = !std::exchange(asking_, true);
      (asks ? asked_ : next_).push_back(std::move(done));
      done = nullptr;
    }
  }
  if (done != nullptr) return done(MapChangeLogs::OwnershipLost());
  if (asks) Ask();
}

// The answer may come when this is about to be destroyed.
void ReadConfirmations::Ask() {
  confirm_([self = shared_from_this()](bool owns) { self->Finish(owns); });
}

void ReadConfirmations::Finish(bool owns) {
  {
    absl::MutexLock lock(&mu_);
    Answer(std::exchange(asked_, {}), owns);
    asked_.swap(next_);
    asking_ = !asked_.empty();
    if (!asking_) return;
  }
  Ask();
}

void ReadConfirmations::Answer(std::vector<ChangeLog::Done> waiting,
                               bool owns) {
  if (waiting.empty()) return;
  answers_->Add([waiting = std::move(waiting), owns]() mutable {
    for (ChangeLog::Done& done : waiting) {
      done(owns ? absl::OkStatus() : MapChangeLogs::OwnershipLost());
    }
  });
}

void ReadConfirmations::Abandon() {
  absl::MutexLock lock(&mu_);
  AnswerAll();
}

void ReadConfirmations::Close() {
  absl::MutexLock lock(&mu_);
  AnswerAll();
  answers_ = nullptr;
}

void ReadConfirmations::AnswerAll() {
  Answer(std::exchange(asked_, {}), false);
  Answer(std::exchange(next_, {}), false);
}

}  // namespace timecache::server
