// The changes of one map that watches read: puts, renewals and removals.

#ifndef TIMECACHED_SERVER_ENGINE_EXPIRY_CHANGE_FEED_H_
#define TIMECACHED_SERVER_ENGINE_EXPIRY_CHANGE_FEED_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/shard/change_watch.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// A log of changes, with a buffer before it for each shard: an operation
// encodes its change into its shard's buffer, under the lock that it holds
// anyway, and each Advance of the map makes a batch of the log of each buffer.
// So the log has the changes of one key in order, and of several in none. Those
// of an atomic batch go to the log at once, as a batch of their own, behind what
// the buffers of its shards have: a reader gets them together.
//
// The log stands for the map only while the map keeps changes: a later feed of
// the same map has another log.
//
// Thread-safe, but for the buffers, which their shards guard. A change costs a
// copy of its key and value. Nothing waits for a reader.
class ChangeFeed : public std::enable_shared_from_this<ChangeFeed> {
 public:
  // Bytes of keys and values in all buffers together, but for the last change
  // in each: then a writer moves its shard's to the log.
  static constexpr size_t kMaxBufferBytes = size_t{1} << 20;
  // How long changes stay in their buffers while there is no reader.
  static constexpr int64_t kIdleFlushUs = kMicrosPerSecond;

  // `map` is the name of the map.
  ChangeFeed(std::string map, const NamespaceOptions& options);
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  // That of a shard, which calls it under its lock. Lives as long as the feed.
  ChangeWatch* buffer(size_t shard) { return &buffers_[shard]; }

  // A position in the log. As ExpiryLog::Cursor; keeps the feed.
  class Cursor {
   public:
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool IsOf(const ChangeFeed* feed) const { return feed_.get() == feed; }
    EventChunk Read(int64_t max_bytes, int max_events = kMaxEventBatchEvents,
                    bool at_least_one = true) {
      return cursor_->Read(max_bytes, max_events, at_least_one);
    }
    LogPoint point() const { return cursor_->point(); }

   private:
    friend class ChangeFeed;
    explicit Cursor(std::shared_ptr<ChangeFeed> feed) : feed_(std::move(feed)) {
      feed_->readers_.fetch_add(1);
    }

    const std::shared_ptr<ChangeFeed> feed_;
    std::unique_ptr<ExpiryLog::Cursor> cursor_;
  };
  // Before the Advance whose changes are the last ones before a new cursor:
  // later ones are flushed at once.
  std::unique_ptr<Cursor> NewCursor() {
    return std::unique_ptr<Cursor>(new Cursor(shared_from_this()));
  }
  // As ExpiryLog::Subscribe and Resume, after that Advance.
  void Subscribe(LogStart start, int64_t now_us, std::function<void()> wake,
                 Cursor* cursor);
  absl::Status Resume(const LogPoint& point, std::function<void()> wake,
                      Cursor* cursor);

  // All buffers have been flushed with this time.
  void Publish(int64_t now_us);
  // Drops what is no longer retained.
  void Trim(int64_t now_us) { log_.Trim(now_us); }
  void SetRetention(const NamespaceOptions& options, int64_t now_us) {
    log_.SetRetention(options.change_retention_us,
                      options.change_retention_bytes, now_us);
  }
  // When the map is to be advanced, or the log trimmed; kNeverUs if never.
  int64_t NextDueUs(int64_t now_us) const;
  // Ends all cursors once they have read everything.
  void Close() { log_.Close(); }

  ExpiryLog::Statistics GetStatistics() const { return log_.GetStatistics(); }

 private:
  // A batch of the log of its own, unless it is larger than one may be.
  class AtomicBuffer final : public AtomicWatch {
   public:
    explicit AtomicBuffer(ChangeFeed* feed) : feed_(feed) {}
    ~AtomicBuffer() override;

    // Of a shard: at most so many changes, and none before this time.
    void Expect(size_t changes, int64_t least_us) {
      expected_ += static_cast<int64_t>(changes);
      NotBefore(least_us);
    }
    void Add(const EntryView& change);
    int64_t time_us() const { return time_us_; }

   private:
    void NotBefore(int64_t least_us) {
      time_us_ = std::max(time_us_, least_us);
    }

    ChangeFeed* const feed_;
    int64_t expected_ = 0;
    std::shared_ptr<EventBatch> batch_;
    int64_t time_us_ = INT64_MIN;
  };

  class Buffer final : public ChangeWatch {
   public:
    explicit Buffer(ChangeFeed* feed) : feed_(feed) {}

    int64_t Add(const EntryView& change) override;
    void Flush(int64_t now_us) override;
    void BeginAtomic(size_t changes,
                     std::unique_ptr<AtomicWatch>* batch) override;
    void EndAtomic() override;

   private:
    void MoveToLog(int64_t now_us);

    ChangeFeed* const feed_;
    // Not null: changes are its.
    AtomicBuffer* atomic_ = nullptr;
    // Null if there is no change.
    std::shared_ptr<EventBatch> batch_;
    // A watermark before this may have been published.
    int64_t least_us_ = INT64_MIN;
  };

  std::shared_ptr<EventBatch> NewBatch() const;
  void AppendToLog(std::shared_ptr<EventBatch> batch, int64_t now_us);
  int64_t FlushDueUs(int64_t now_us) const {
    return readers_.load(std::memory_order_relaxed) > 0 ? now_us
                                                        : now_us + kIdleFlushUs;
  }

  const std::string map_;
  const int64_t max_buffer_bytes_;
  std::vector<Buffer> buffers_;
  // Buffers with a change.
  std::atomic<int> filled_{0};
  std::atomic<int> readers_{0};
  // Whether the log has got changes since it woke its cursors.
  std::atomic<bool> unwoken_{false};
  ExpiryLog log_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_EXPIRY_CHANGE_FEED_H_
