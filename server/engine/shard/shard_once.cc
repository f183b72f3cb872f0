// The part of a shard that applies an operation with an idempotency id once.

#include <memory>

#include "server/engine/shard/shard.h"

namespace timecache::server {

AnswerView Shard::AnswerOf(const Result& result) const {
  AnswerView answer = {.until_us = now_us_ + idempotency_window_us_,
                       .version = result.version,
                       .number = result.number,
                       .found = result.found,
                       .removed = result.removed,
                       .duplicate = result.duplicate,
                       .has_parts = result.has_entry};
  if (result.has_entry) answer.value = result.entry.value;
  return answer;
}

// Applies it, unless an answer to its id is remembered: then that is the result.
Shard::Outcome Shard::ApplyOnce(const Operation& op, uint64_t hash,
                                ResponseBudget* room, Result* result) {
  Once once = {{hash, key_hash_(op.id())}, result};
  const RememberedAnswers::Kept* const kept =
      answers_ == nullptr ? nullptr : answers_->Find(once.id, now_us_);
  if (kept != nullptr) {
    if (kept->has_parts && !TakeRoom(kept->value.size(), room, result)) {
      return {};
    }
    result->version = kept->version;
    result->number = kept->number;
    result->found = kept->found;
    result->removed = kept->removed;
    result->duplicate = kept->duplicate;
    result->has_entry = kept->has_parts;
    result->entry = Entry();
    result->entry.parts = kept->has_parts;
    result->entry.value = kept->value;
    Outcome outcome;
    outcome.repeated = true;
    return outcome;
  }
  once_ = &once;
  const Outcome outcome = ApplyOne(op, hash, room, result);
  once_ = nullptr;
  if (outcome.hit != LimitHit::kNone || !result->status.ok() ||
      atomic_ == Atomic::kChecking) {
    return outcome;
  }
  const AnswerTo answer = {once.id, AnswerOf(*result)};
  KeepAnswer(answer);
  // Where nothing has changed.
  if (sink_ != nullptr && !once.reported) EmitAnswer(answer);
  return outcome;
}

// With the answer: its operation has set all that this says by now.
void Shard::EmitOnce(const Change& change) {
  const AnswerTo answer = {once_->id, AnswerOf(*once_->result)};
  Change both = change;
  both.answer = &answer;
  once_->reported = true;
  sink_->Add(sink_shard_, both);
}

void Shard::EmitAnswer(const AnswerTo& answer) {
  sink_->Add(sink_shard_, {.kind = Change::Kind::kAnswer,
                           .at_us = now_us_,
                           .hash = answer.id.key_hash,
                           .answer = &answer});
}

void Shard::KeepAnswer(const AnswerTo& answer) {
  if (answer.answer.until_us <= now_us_) return;
  if (answers_ == nullptr) {
    answers_ = std::make_unique<RememberedAnswers>();
    answers_->SetLimits(max_answers_, max_answer_bytes_);
  }
  answers_->Add(answer.id, answer.answer, now_us_);
}

}  // namespace timecache::server
