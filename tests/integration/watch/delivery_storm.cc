#include "tests/integration/watch/delivery_storm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace timecache::test {

DeliveryStorm::DeliveryStorm(TestServer* server, int rounds, int per_round,
                             int64_t retention_bytes)
    : server_(server),
      rounds_(rounds),
      per_round_(per_round),
      start_us_(server->now_us()),
      end_us_(DeathUs(TimeOf(rounds)) + kWidthUs),
      now_us_(start_us_) {
  server_->Create(kNamespace,
                  absl::StrCat("event_retention_bytes: ", retention_bytes));
}

int64_t DeliveryStorm::DeathOf(int64_t number) const {
  return DeathUs(TimeOf(static_cast<int>(number / per_round_)));
}

int64_t DeliveryStorm::DiedBy(int64_t time_us) const {
  const int64_t rounds = (time_us - DeathUs(start_us_)) / kWidthUs + 1;
  if (time_us < DeathUs(start_us_)) return 0;
  return std::min<int64_t>(rounds, rounds_) * per_round_;
}

int64_t DeliveryStorm::NumberOf(const std::string& key,
                                const std::string& value) const {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(key, absl::MaxSplits('/', 1));
  int round = 0;
  int index = 0;
  const bool numbers = absl::SimpleAtoi(parts.first, &round) &&
                       absl::SimpleAtoi(parts.second, &index);
  if (!numbers || round < 0 || round >= rounds_ || index < 0 ||
      index >= per_round_ || value != parts.first) {
    return -1;
  }
  return int64_t{round} * per_round_ + index;
}

void DeliveryStorm::Run() {
  for (int round = 0; TimeOf(round) < end_us_; ++round) {
    if (round < rounds_) {
      server_->Fill(per_round_, absl::StrCat(round, "/"), absl::StrCat(round),
                    kNamespace);
    }
    server_->AdvanceTo(std::min(TimeOf(round + 1), end_us_));
    absl::MutexLock lock(&mu_);
    now_us_ = server_->now_us();
    const auto all_are_near = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const int64_t near_us = now_us_ - kMaxLead * kWidthUs;
      return std::all_of(
          told_us_.begin(), told_us_.end(),
          [near_us](const auto& it) { return it.second >= near_us; });
    };
    mu_.Await(absl::Condition(&all_are_near));
  }
  absl::MutexLock lock(&mu_);
  over_ = true;
}

void DeliveryStorm::Delivered(int watcher, int64_t watermark_us) {
  absl::MutexLock lock(&mu_);
  told_us_[watcher] = watermark_us;
}

void DeliveryStorm::Leave(int watcher, int rounds) {
  absl::MutexLock lock(&mu_);
  told_us_.erase(watcher);
  const int64_t until_us = now_us_ + rounds * kWidthUs;
  const auto back = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return over_ || now_us_ >= until_us;
  };
  mu_.Await(absl::Condition(&back));
}

}  // namespace timecache::test
