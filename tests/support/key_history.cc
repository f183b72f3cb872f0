#include "tests/support/key_history.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace timecache::test {
namespace {

// The key, in a map of which nothing else is known.
struct State {
  int64_t now_us = 0;
  bool present = false;
  std::string value;
  uint64_t version = 0;  // 0: whoever put it was not told.
  uint64_t largest_version = 0;
  // It dies at one of the moments from the one to the other: when exactly it
  // was put between call and answer is not known.
  int64_t first_death_us = 0;
  int64_t last_death_us = 0;

  auto fields() const {
    return std::tie(now_us, present, value, version, largest_version,
                    first_death_us, last_death_us);
  }
};

using States = std::vector<State>;

bool IsNumber(const std::string& text, int64_t* number) {
  return absl::SimpleAtoi(text, number) && absl::StrCat(*number) == text;
}

// What one operation makes of a state: none if its answer cannot be, several if
// more than one thing may have happened.
class Step {
 public:
  Step(const HistoryEntry& entry, const HistoryOptions& options)
      : entry_(entry),
        options_(options),
        answered_(entry.answered_at != HistoryEntry::kNever) {}

  States From(const State& before) {
    if (entry_.kind == HistoryKind::kAdvance) {
      State after = before;
      after.now_us = std::max(after.now_us, entry_.number);
      return {after};
    }
    if (before.present && before.now_us < before.last_death_us) {
      State live = before;
      live.first_death_us = std::max(live.first_death_us, live.now_us + 1);
      OnLive(live);
    }
    if (!before.present || before.now_us >= before.first_death_us) {
      State gone = before;
      gone.present = false;
      OnGone(gone);
    }
    return std::move(after_);
  }

 private:
  void OnLive(State state) {
    if (entry_.if_version) {
      State other = state;
      if (other.version == 0 || other.version != *entry_.if_version) {
        Refuse(std::move(other), /*found=*/true);
      }
      if (!Learn(*entry_.if_version, &state)) return;
    }
    if (entry_.if_absent) {
      Refuse(std::move(state), /*found=*/true);
      return;
    }
    switch (entry_.kind) {
      case HistoryKind::kGet:
        if (!Answers(/*found=*/true)) return;
        if (answered_ &&
            (entry_.got != state.value || !Learn(entry_.version, &state))) {
          return;
        }
        break;
      case HistoryKind::kTouch:
        if (!Answers(/*found=*/true)) return;
        if (answered_ && !Learn(entry_.version, &state)) return;
        Renew(&state);
        break;
      case HistoryKind::kRemove:
        if (!Answers(/*found=*/true)) return;
        state.present = false;
        break;
      case HistoryKind::kPut:
        state.value = entry_.value;
        if (!entry_.keep_deadline) Renew(&state);
        if (!Change(&state)) return;
        break;
      case HistoryKind::kAppend:
        if (!Answers(/*found=*/true)) return;
        state.value += entry_.value;
        if (!Change(&state)) return;
        break;
      case HistoryKind::kAdd: {
        int64_t number = 0;
        if (!IsNumber(state.value, &number)) {
          Refuse(std::move(state), /*found=*/true);
          return;
        }
        if (!Answers(/*found=*/true)) return;
        state.value = absl::StrCat(number + entry_.number);
        if (!Change(&state)) return;
        break;
      }
      case HistoryKind::kAdvance:
        break;
    }
    after_.push_back(std::move(state));
  }

  void OnGone(State state) {
    if (entry_.if_version) {
      Refuse(std::move(state), /*found=*/false);
      return;
    }
    switch (entry_.kind) {
      case HistoryKind::kGet:
      case HistoryKind::kTouch:
      case HistoryKind::kRemove:
        if (!Answers(/*found=*/false)) return;
        break;
      case HistoryKind::kPut:
      case HistoryKind::kAppend:
      case HistoryKind::kAdd:
        if (entry_.kind != HistoryKind::kPut && !Answers(/*found=*/false)) {
          return;
        }
        state.value = entry_.kind == HistoryKind::kAdd
                          ? absl::StrCat(entry_.number)
                          : entry_.value;
        state.present = true;
        Renew(&state);
        if (!Change(&state)) return;
        break;
      case HistoryKind::kAdvance:
        break;
    }
    after_.push_back(std::move(state));
  }

  // It was done, and said that the key was there, or not.
  bool Answers(bool found) const {
    return !answered_ || (entry_.done && entry_.found == found);
  }

  // It was not done.
  void Refuse(State state, bool found) {
    if (answered_ && (entry_.done || entry_.found != found)) return;
    after_.push_back(std::move(state));
  }

  // The entry that is there has this version.
  static bool Learn(uint64_t version, State* state) {
    if (state->version == 0 && version > state->largest_version) {
      state->version = state->largest_version = version;
    }
    return state->version == version;
  }

  // The value is a new one, with the version and length that were answered.
  bool Change(State* state) const {
    state->version = 0;
    if (!answered_) return true;
    if (!entry_.done || !Learn(entry_.version, state)) return false;
    int64_t number = 0;
    switch (entry_.kind) {
      case HistoryKind::kAppend:
        return entry_.result == static_cast<int64_t>(state->value.size());
      case HistoryKind::kAdd:
        return IsNumber(state->value, &number) && entry_.result == number;
      default:
        return true;
    }
  }

  void Renew(State* state) const {
    state->first_death_us = DeathOf(std::min(entry_.clock_us, state->now_us));
    state->last_death_us = DeathOf(state->now_us);
  }

  int64_t DeathOf(int64_t put_us) const {
    const int64_t deadline_us = put_us + options_.ttl_us;
    return (deadline_us + options_.width_us - 1) / options_.width_us *
           options_.width_us;
  }

  const HistoryEntry& entry_;
  const HistoryOptions& options_;
  const bool answered_;
  States after_;
};

class Search {
 public:
  Search(std::vector<HistoryEntry> history, const HistoryOptions& options)
      : history_(std::move(history)), options_(options) {
    // What was answered first is tried first: it is often the order.
    std::sort(history_.begin(), history_.end(),
              [](const HistoryEntry& a, const HistoryEntry& b) {
                return std::tie(a.answered_at, a.called_at) <
                       std::tie(b.answered_at, b.called_at);
              });
    ordered_.resize(history_.size(), '0');
    for (const HistoryEntry& entry : history_) {
      left_ += entry.answered_at != HistoryEntry::kNever;
    }
  }

  HistoryVerdict Run() {
    State state;
    state.now_us = options_.start_us;
    HistoryVerdict verdict;
    if (From(state)) {
      verdict.verdict = Verdict::kLinearizable;
    } else if (tried_.size() < options_.max_states) {
      verdict.verdict = Verdict::kNotLinearizable;
      verdict.why = best_;
    }
    verdict.states = tried_.size();
    return verdict;
  }

 private:
  // Whether what is left can be put in order behind this state. As deep as the
  // history is long.
  bool From(const State& state) {
    if (left_ == 0) return true;
    if (tried_.size() >= options_.max_states) return false;
    if (!tried_.insert(Key(state)).second) return false;
    // None may come before one that was answered before it was called.
    int64_t first_answer = HistoryEntry::kNever;
    for (size_t i = 0; i < history_.size(); ++i) {
      if (ordered_[i] == '0') {
        first_answer = history_[i].answered_at;
        break;
      }
    }
    std::vector<size_t> candidates;
    for (size_t i = 0; i < history_.size(); ++i) {
      if (ordered_[i] == '0' && history_[i].called_at < first_answer) {
        candidates.push_back(i);
      }
    }
    Remember(state, candidates);
    for (const size_t i : candidates) {
      const bool answered = history_[i].answered_at != HistoryEntry::kNever;
      ordered_[i] = '1';
      left_ -= answered;
      ++depth_;
      for (const State& after : Step(history_[i], options_).From(state)) {
        if (From(after)) return true;
      }
      --depth_;
      ordered_[i] = '0';
      left_ += answered;
    }
    return false;
  }

  std::string Key(const State& state) const {
    std::string key = ordered_;
    std::apply(
        [&](const auto&... field) {
          ((absl::StrAppend(&key, "|", field)), ...);
        },
        state.fields());
    return key;
  }

  // For the message: where it came furthest.
  void Remember(const State& state, const std::vector<size_t>& candidates) {
    if (depth_ < best_depth_ || (depth_ == best_depth_ && !best_.empty())) {
      return;
    }
    best_depth_ = depth_;
    best_ = absl::StrCat(
        "after ", depth_, " of ", history_.size(), " the key is ",
        state.present
            ? absl::StrCat("\"", state.value, "\", version ", state.version)
            : "not there",
        ", the time ", state.now_us, "; next could be:");
    for (const size_t i : candidates) {
      absl::StrAppend(&best_, "\n  ", history_[i].Text());
    }
  }

  std::vector<HistoryEntry> history_;
  const HistoryOptions options_;
  std::string ordered_;  // Of each entry: '1' if it has its place.
  size_t left_ = 0;      // Answered ones without a place.
  absl::flat_hash_set<std::string> tried_;
  size_t depth_ = 0;
  size_t best_depth_ = 0;
  std::string best_;
};

}  // namespace

std::string HistoryEntry::Text() const {
  static constexpr const char* kNames[] = {"put", "get",   "remove", "append",
                                           "add", "touch", "advance"};
  std::string text = absl::StrCat(
      "[", called_at, ", ",
      answered_at == kNever ? "never" : absl::StrCat(answered_at), "] ",
      kNames[static_cast<int>(kind)], " \"", value, "\" ", number);
  if (if_absent) absl::StrAppend(&text, " if absent");
  if (if_version) absl::StrAppend(&text, " if version ", *if_version);
  if (answered_at == kNever) return text;
  absl::StrAppend(&text, " -> ", done ? "done" : "refused",
                  found ? ", found \"" : ", not found \"", got, "\", version ",
                  version, ", ", result);
  return text;
}

HistoryVerdict CheckHistory(std::vector<HistoryEntry> history,
                            const HistoryOptions& options) {
  return Search(std::move(history), options).Run();
}

}  // namespace timecache::test
