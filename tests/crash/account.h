// What a client that writes knows of its keys: what was answered, and what may
// have become of operations that a killed server has not answered.

#ifndef TIMECACHED_TESTS_CRASH_ACCOUNT_H_
#define TIMECACHED_TESTS_CRASH_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"
#include "timecache/operation.h"

namespace timecache::test {

// An operation that was sent.
struct Sent {
  enum class Kind { kPut, kRemove, kAppend, kTouch };

  Operation ToOperation() const {
    switch (kind) {
      case Kind::kRemove:
        return Operation::Remove(key);
      case Kind::kAppend:
        return Operation::Append(key, value);
      case Kind::kTouch:
        return Operation::Touch(key);
      case Kind::kPut:
        break;
    }
    return Operation::Put(key, value);
  }

  Kind kind;
  std::string key;
  std::string value;
};

// Of keys that nobody else writes. Not thread-safe.
struct Account {
  // What was answered last of a key; version 0: a removal, or nothing.
  struct Key {
    uint64_t version = 0;
    std::string value;
    // Of an operation that was sent since, and has no answer: the key is as
    // before it, or as one of these. "(none)" after a removal.
    std::set<std::string> may_be;
  };

  // Draws an operation, and enters what may become of the key.
  Sent Draw(const std::string& key, Dice& dice) {
    Key& known = keys[key];
    Sent sent{Sent::Kind::kPut, key, std::string(dice.Index(300), 'v')};
    const int64_t percent = dice.Draw(0, 99);
    if (percent < 5) {
      // Nobody sees whether it was done.
      sent.kind = Sent::Kind::kTouch;
      return sent;
    }
    if (percent < 20) {
      sent.kind = Sent::Kind::kRemove;
      known.may_be = {"(none)"};
    } else if (percent < 35) {
      sent.kind = Sent::Kind::kAppend;
      // What it is appended to may be dead.
      known.may_be = {known.value + sent.value, sent.value};
    } else {
      known.may_be = {sent.value};
    }
    if (known.version != 0) ended.insert(known.version);
    return sent;
  }

  // Enters its answer. An entry that was put or touched by it dies at
  // `dies_from` or later.
  void Enter(const Sent& sent, const OperationResult& result,
             absl::Time dies_from) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    Key& known = keys[sent.key];
    known.may_be.clear();
    if (sent.kind == Sent::Kind::kTouch) {
      if (!result.found) return;
      EXPECT_EQ(result.version, known.version);
      put[result.version] = dies_from;
      return;
    }
    if (sent.kind == Sent::Kind::kRemove) {
      known = {};
      return;
    }
    if (sent.kind == Sent::Kind::kAppend && !result.created) {
      // It leaves the entry its time.
      dies_from = put[known.version];
      known.value += sent.value;
    } else {
      known.value = sent.value;
    }
    if (sent.kind == Sent::Kind::kAppend) {
      EXPECT_EQ(result.number, static_cast<int64_t>(known.value.size()));
    }
    known.version = result.version;
    put[known.version] = dies_from;
  }

  std::map<std::string, Key> keys;
  // Versions that were answered, and before when none of them may expire.
  std::map<uint64_t, absl::Time> put;
  // Replaced or removed, or perhaps.
  std::set<uint64_t> ended;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CRASH_ACCOUNT_H_
