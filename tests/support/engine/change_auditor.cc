#include "tests/support/engine/change_auditor.h"

#include <utility>

#include "gtest/gtest.h"

namespace timecache::server {

Result ChangeAuditor::Apply(const Operation& op, int64_t now_us,
                            uint64_t version, ReferenceModel* model) {
  const std::string key(op.key);
  model->Advance(now_us);
  const auto find = [&]() -> std::optional<Entry> {
    const auto it = model->entries().find(key);
    if (it == model->entries().end()) return std::nullopt;
    return it->second.entry;
  };
  const std::optional<Entry> before = find();
  Result result = model->Apply(op, now_us, version);
  if (!result.status.ok()) return result;
  const std::optional<Entry> after = find();
  const bool touches =
      op.kind == OpKind::kTouch ||
      (op.kind == OpKind::kGet &&
       (op.touch || (model->options().sliding && !op.never_touch)));
  if (touches) {
    if (after) {
      expected_[key].push_back({ChangeKind::kRenewed, *after, now_us});
    }
  } else if (!after) {
    if (before) {
      expected_[key].push_back({ChangeKind::kRemoved, *before, now_us});
    }
  } else if (!before || before->version != after->version) {
    expected_[key].push_back({ChangeKind::kPut, *after, now_us});
  }
  return result;
}

void ChangeAuditor::Check(const EventChunk& chunk) {
  ASSERT_EQ(chunk.lost, 0u);
  ASSERT_GE(chunk.watermark_us, watermark_us_);
  for (const auto& batch : chunk.batches) {
    ASSERT_GT(batch->death_us(), watermark_us_);
    for (int i = 0; i < batch->size(); ++i) {
      const ExpiredEvent change = batch->event(i);
      const std::string key(change.key);
      ASSERT_EQ(batch->key(i), change.key);
      std::deque<Change>& queue = expected_[key];
      ASSERT_FALSE(queue.empty()) << "nothing has changed: " << key;
      const Change expected = std::move(queue.front());
      queue.pop_front();
      ASSERT_EQ(change.change, expected.kind);
      ASSERT_EQ(change.version, expected.entry.version);
      // Or a microsecond after a watermark of that time.
      ASSERT_GE(change.put_us, expected.at_us);
      ASSERT_LE(change.put_us, expected.at_us + 1);
      ASSERT_GE(change.put_us, batch->death_us());
      int64_t& last_us = last_us_[key];
      ASSERT_GE(change.put_us, last_us);
      last_us = change.put_us;
      if (change.change != ChangeKind::kRemoved) {
        ASSERT_EQ(change.deadline_us, expected.entry.deadline_us);
      }
      if (change.change == ChangeKind::kPut) {
        ASSERT_TRUE(change.value == expected.entry.value);
        ASSERT_EQ(change.parts, expected.entry.parts);
      } else {
        ASSERT_TRUE(change.value.empty());
      }
    }
  }
  watermark_us_ = chunk.watermark_us;
  if (chunk.more) return;
  for (const auto& [key, queue] : expected_) {
    ASSERT_TRUE(queue.empty() || queue.front().at_us >= watermark_us_)
        << "a watermark is ahead of a change of " << key;
  }
}

void ChangeAuditor::CheckComplete() const {
  for (const auto& [key, queue] : expected_) {
    ASSERT_TRUE(queue.empty()) << "a change is missing: " << key;
  }
}

}  // namespace timecache::server
