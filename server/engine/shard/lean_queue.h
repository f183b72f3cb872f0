// A queue that takes no memory while it is empty.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_LEAN_QUEUE_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_LEAN_QUEUE_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace timecache::server {

// First in, first out. A std::deque has half a KiB also while it is empty, and
// a server many shards whose queues are. Not thread-safe. O(1) amortized.
template <typename T>
class LeanQueue {
 public:
  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size() - begin_; }
  // Must not be empty.
  T& front() { return items_[begin_]; }

  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (size_t i = begin_; i < items_.size(); ++i) visit(items_[i]);
  }

  void push_back(T item) { items_.push_back(std::move(item)); }
  void pop_front() { Drop(1); }
  // The first ones, of which there must be as many.
  void Drop(size_t count) {
    begin_ += count;
    if (begin_ == items_.size()) {
      begin_ = 0;
      items_.clear();
      if (items_.capacity() > kKept) items_ = {};
    } else if (begin_ > kKept && begin_ * 2 > items_.size()) {
      items_.erase(items_.begin(),
                   items_.begin() + static_cast<ptrdiff_t>(begin_));
      begin_ = 0;
    }
  }

 private:
  static constexpr size_t kKept = 16;

  // Those from begin_ on.
  std::vector<T> items_;
  size_t begin_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_LEAN_QUEUE_H_
