#include "client/examples/session_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/examples/terminal.h"

namespace timecache::sessionize {

SessionWatch::SessionWatch(const Client& client, WatchStart start,
                           Callbacks callbacks, absl::Duration patience)
    : ns_(client.options().default_namespace),
      callbacks_(std::move(callbacks)),
      patience_(patience),
      thread_(
          client,
          {.start = start,
           .on_break = [this](const absl::Status& why) { EndureBreak(why); }},
          [this](const WatchBatch& batch) { Take(batch); },
          [this](const absl::Status& why) { Fail(why); }) {}

absl::Status SessionWatch::Await(absl::Time watermark) {
  const auto is_done = [this, watermark]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !status_.ok() || (stands_ && watermark_ >= watermark);
  };
  absl::MutexLock lock(&mu_, absl::Condition(&is_done));
  return status_;
}

absl::Status SessionWatch::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

uint64_t SessionWatch::told() const {
  absl::MutexLock lock(&mu_);
  return told_;
}

void SessionWatch::Take(const WatchBatch& batch) {
  if (!status().ok()) return;
  const absl::Status status = Deliver(batch);
  if (!status.ok()) return Fail(status);
  absl::MutexLock lock(&mu_);
  stands_ = true;
  watermark_ = batch.watermark;
}

absl::Status SessionWatch::Deliver(const WatchBatch& batch) {
  broken_since_ = absl::InfiniteFuture();
  if (batch.log_changed) {
    return absl::DataLossError(
        absl::StrCat("namespace \"", ns_,
                     "\" is not the one it was, as after a restart of the "
                     "server: sessions that ended were not reported"));
  }
  if (batch.lost > 0) {
    return absl::DataLossError(absl::StrCat(
        CountText(batch.lost),
        " sessions that ended were not reported: read the output faster, or "
        "give namespace \"",
        ns_, "\" more event_retention_bytes"));
  }
  for (const ExpiredEvent& event : batch.events) {
    const absl::StatusOr<Session> session = DecodeSession(event.value);
    if (event.cause != ExpiryCause::kExpired || !session.ok()) {
      callbacks_.on_warning(absl::StrCat(
          Escape(event.key), ": ",
          !session.ok()
              ? "the entry that died is not a session"
              : absl::StrCat("its session was ",
                             event.cause == ExpiryCause::kEvicted ? "evicted"
                                                                  : "rotated",
                             " before its time, which does not end it")));
      continue;
    }
    absl::Status status =
        callbacks_.on_end({event.key, *session, event.death_time});
    if (!status.ok()) return status;
    absl::MutexLock lock(&mu_);
    ++told_;
  }
  return callbacks_.on_pause();
}

void SessionWatch::EndureBreak(const absl::Status& why) {
  broken_since_ = std::min(broken_since_, absl::Now());
  if (absl::Now() - broken_since_ < patience_) return;
  Fail(absl::UnavailableError(
      absl::StrCat("the connection broke while sessions were being reported (",
                   why.ok() ? "the server stopped" : why.message(), ")")));
}

void SessionWatch::Fail(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (status_.ok()) status_ = why;
}

}  // namespace timecache::sessionize
