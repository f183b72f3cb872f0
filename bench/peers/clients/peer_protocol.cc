#include "bench/peers/clients/peer_protocol.h"

#include <hiredis/hiredis.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace timecache::bench {
namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr int kParts = 3;  // Of a key that gathers them.

void AppendBulk(std::string_view bytes, std::string* out) {
  absl::StrAppend(out, "$", bytes.size(), "\r\n");
  out->append(bytes);
  out->append(kEnd);
}

class RedisProtocol final : public PeerProtocol {
 public:
  RedisProtocol(const Expiry& expiry, const RedisWrite& write)
      : reader_(redisReaderCreate()),
        write_(write.kind),
        put_header_("*3\r\n$3\r\nSET\r\n") {
    // Replies are only told by their type: no object is made of them.
    reader_->fn = nullptr;
    if (write.replicas > 0) {
      end_ = "*3\r\n$4\r\nWAIT\r\n";
      AppendBulk(absl::StrCat(write.replicas), &end_);
      AppendBulk("0", &end_);  // For as long as it takes.
    }
    if (write_ != RedisWrite::Kind::kSet) {
      SetWrite(expiry, write.script_sha);
      return;
    }
    if (expiry.deadline_ms != 0) {
      AppendBulk("PXAT", &put_tail_);
      AppendBulk(absl::StrCat(expiry.deadline_ms), &put_tail_);
    } else if (expiry.ttl_ms % 1000 != 0) {
      AppendBulk("PX", &put_tail_);
      AppendBulk(absl::StrCat(expiry.ttl_ms), &put_tail_);
    } else if (expiry.ttl_ms != 0) {
      AppendBulk("EX", &put_tail_);
      AppendBulk(absl::StrCat(expiry.ttl_ms / 1000), &put_tail_);
    }
    if (!put_tail_.empty()) put_header_[1] = '5';
  }
  ~RedisProtocol() override { redisReaderFree(reader_); }

  void AppendPut(std::string_view key, std::string_view value,
                 std::string* out) const override {
    out->append(put_header_);
    AppendBulk(key, out);
    if (write_ == RedisWrite::Kind::kGather) {
      AppendBulk(std::string_view("012").substr(part_, 1), out);
      part_ = (part_ + 1) % kParts;
    }
    if (write_ != RedisWrite::Kind::kIncrBy) AppendBulk(value, out);
    out->append(put_tail_);
  }

  void AppendGet(std::string_view key, std::string* out) const override {
    out->append("*2\r\n$3\r\nGET\r\n");
    AppendBulk(key, out);
  }

  int AppendEnd(std::string* out) const override {
    out->append(end_);
    return end_.empty() ? 0 : 1;
  }

  void Feed(std::string_view received) override {
    redisReaderFeed(reader_, received.data(), received.size());
  }

  Reply Next() override {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_, &reply) != REDIS_OK) return Reply::kError;
    switch (reinterpret_cast<uintptr_t>(reply)) {
      case 0:
        return Reply::kIncomplete;
      case REDIS_REPLY_STATUS:
      case REDIS_REPLY_INTEGER:
      case REDIS_REPLY_ARRAY:
        return Reply::kStored;
      case REDIS_REPLY_STRING:
        return Reply::kHit;
      case REDIS_REPLY_NIL:
        return Reply::kMiss;
      default:
        return Reply::kError;
    }
  }

 private:
  void SetWrite(const Expiry& expiry, const std::string& script_sha) {
    switch (write_) {
      case RedisWrite::Kind::kAppend:
        put_header_ = "*3\r\n$6\r\nAPPEND\r\n";
        break;
      case RedisWrite::Kind::kIncrBy:
        put_header_ = "*3\r\n$6\r\nINCRBY\r\n";
        AppendBulk("1", &put_tail_);
        break;
      default:
        put_header_ = "*8\r\n$7\r\nEVALSHA\r\n";
        AppendBulk(script_sha, &put_header_);
        AppendBulk("1", &put_header_);
        AppendBulk(absl::StrCat(kParts), &put_tail_);
        AppendBulk(absl::StrCat(expiry.ttl_ms), &put_tail_);
    }
  }

  redisReader* const reader_;
  const RedisWrite::Kind write_;
  mutable size_t part_ = 0;
  std::string end_;
  std::string put_header_;
  std::string put_tail_;
};

class MemcachedProtocol final : public PeerProtocol {
 public:
  explicit MemcachedProtocol(const Expiry& expiry) {
    // Above 30 days it takes the number for a Unix time: so does a deadline.
    const int64_t seconds = expiry.deadline_ms != 0
                                ? (expiry.deadline_ms + 999) / 1000
                                : (expiry.ttl_ms + 999) / 1000;
    exptime_ = absl::StrCat(" 0 ", seconds, " ");
  }

  void AppendPut(std::string_view key, std::string_view value,
                 std::string* out) const override {
    out->append("set ");
    out->append(key);
    out->append(exptime_);
    absl::StrAppend(out, value.size(), "\r\n");
    out->append(value);
    out->append(kEnd);
  }

  void AppendGet(std::string_view key, std::string* out) const override {
    out->append("get ");
    out->append(key);
    out->append(kEnd);
  }

  void Feed(std::string_view received) override {
    received_.erase(0, read_);
    read_ = 0;
    received_.append(received);
  }

  Reply Next() override {
    const size_t end = received_.find(kEnd, read_);
    if (end == std::string::npos) return Reply::kIncomplete;
    const std::string_view line =
        std::string_view(received_).substr(read_, end - read_);
    const size_t next = end + kEnd.size();
    if (line.starts_with("VALUE ")) return NextValue(line, next);
    read_ = next;
    if (line == "STORED") return Reply::kStored;
    return line == "END" ? Reply::kMiss : Reply::kError;
  }

 private:
  // VALUE key flags bytes, the value, END.
  Reply NextValue(std::string_view line, size_t value_begin) {
    constexpr std::string_view kTrailer = "\r\nEND\r\n";
    const size_t bytes = std::strtoul(line.data() + line.find_last_of(' ') + 1,
                                      nullptr, /*base=*/10);
    const size_t trailer = value_begin + bytes;
    if (received_.size() < trailer + kTrailer.size()) return Reply::kIncomplete;
    read_ = trailer + kTrailer.size();
    return received_.compare(trailer, kTrailer.size(), kTrailer) == 0
               ? Reply::kHit
               : Reply::kError;
  }

  std::string exptime_;
  std::string received_;
  size_t read_ = 0;  // of received_
};

}  // namespace

std::unique_ptr<PeerProtocol> MakeRedisProtocol(const Expiry& expiry,
                                                const RedisWrite& write) {
  return std::make_unique<RedisProtocol>(expiry, write);
}

std::unique_ptr<PeerProtocol> MakeMemcachedProtocol(const Expiry& expiry) {
  return std::make_unique<MemcachedProtocol>(expiry);
}

}  // namespace timecache::bench
