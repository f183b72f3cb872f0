#include "server/engine/shard/key_sample.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace timecache::server {
namespace {

// Rates over less are no rates.
constexpr int64_t kLeastWindowUs = 1'000'000;

struct KeyUse {
  uint64_t samples = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t value_bytes = 0;

  uint64_t operations() const { return reads + writes; }
};

}  // namespace

// From 1 to twice the mean, so that no pattern of operations falls in step.
uint32_t KeySample::NextInterval() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return 1 + static_cast<uint32_t>((random_ >> 32) % (2 * kInterval - 1));
}

uint32_t KeySample::Add(absl::string_view key, bool wrote,
                        std::optional<uint64_t> value_bytes, int64_t now_us) {
  absl::MutexLock lock(&mu_);
  DropOld(now_us);
  if (until_kept_ > 0) {
    --until_kept_;
    return NextInterval();
  }
  samples_.push_back({std::string(key), now_us, weight_, wrote,
                      value_bytes.has_value(), value_bytes.value_or(0)});
  key_bytes_ += key.size();
  while (samples_.size() - begin_ > kMaxSamples || key_bytes_ > kMaxKeyBytes) {
    Thin();
  }
  until_kept_ = weight_ - 1;
  Charge();
  return NextInterval();
}

void KeySample::DropOld(int64_t now_us) {
  while (begin_ < samples_.size() &&
         samples_[begin_].at_us <= now_us - kWindowUs) {
    key_bytes_ -= samples_[begin_].key.size();
    samples_[begin_++].key = {};
  }
  if (begin_ * 2 > samples_.size()) {
    samples_.erase(samples_.begin(),
                   samples_.begin() + static_cast<ptrdiff_t>(begin_));
    begin_ = 0;
  }
  // After a busy time.
  while (weight_ > 1 && samples_.size() - begin_ < kMaxSamples / 8 &&
         key_bytes_ < kMaxKeyBytes / 8) {
    weight_ /= 2;
    until_kept_ = 0;
  }
}

void KeySample::Thin() {
  std::vector<Sample> kept;
  key_bytes_ = 0;
  for (size_t i = begin_ + 1; i < samples_.size(); i += 2) {
    samples_[i].weight *= 2;
    key_bytes_ += samples_[i].key.size();
    kept.push_back(std::move(samples_[i]));
  }
  samples_ = std::move(kept);
  begin_ = 0;
  weight_ *= 2;
}

void KeySample::Charge() {
  charge_.Set(
      static_cast<int64_t>(samples_.capacity() * sizeof(Sample) + key_bytes_));
}

HotKeys KeySample::Top(size_t max_keys, int64_t began_us, int64_t now_us) {
  absl::MutexLock lock(&mu_);
  DropOld(now_us);
  HotKeys top;
  top.window_us =
      std::clamp(now_us - began_us, kLeastWindowUs, int64_t{kWindowUs});
  const double per_second =
      kInterval * 1e6 / static_cast<double>(top.window_us);
  absl::flat_hash_map<absl::string_view, KeyUse> uses;
  uint64_t operations = 0;
  for (size_t i = begin_; i < samples_.size(); ++i) {
    const Sample& sample = samples_[i];
    KeyUse& use = uses[sample.key];
    ++use.samples;
    (sample.wrote ? use.writes : use.reads) += sample.weight;
    if (sample.has_value) use.value_bytes = sample.value_bytes;
    operations += sample.weight;
  }
  top.sampled = samples_.size() - begin_;
  top.operations_per_second = static_cast<double>(operations) * per_second;
  std::vector<std::pair<absl::string_view, KeyUse>> order;
  for (const auto& each : uses) {
    if (each.second.samples >= kLeastSamples) order.push_back(each);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    if (a.second.operations() != b.second.operations()) {
      return a.second.operations() > b.second.operations();
    }
    return a.first < b.first;
  });
  order.resize(std::min(order.size(), max_keys));
  for (const auto& [key, use] : order) {
    top.keys.push_back(
        {std::string(key), static_cast<double>(use.reads) * per_second,
         static_cast<double>(use.writes) * per_second, use.value_bytes});
  }
  return top;
}

}  // namespace timecache::server
