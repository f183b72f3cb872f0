// How the peers are spoken to: requests as bytes, and replies out of bytes.

#ifndef TIMECACHED_BENCH_PEERS_CLIENTS_PEER_PROTOCOL_H_
#define TIMECACHED_BENCH_PEERS_CLIENTS_PEER_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace timecache::bench {

enum class Reply {
  kIncomplete,  // more bytes are needed
  kStored,
  kHit,
  kMiss,
  kError,
};

// When what is put expires.
struct Expiry {
  int64_t ttl_ms = 0;       // from the put on; 0: never
  int64_t deadline_ms = 0;  // at this Unix time; 0: ttl_ms says
};

// What Redis does where others put.
struct RedisWrite {
  enum class Kind {
    kSet,
    kAppend,  // The value; without a time to live.
    kIncrBy,  // 1; without a time to live.
    kGather,  // A script: key, one of three parts, value, how many, ttl in ms.
  };
  Kind kind = Kind::kSet;
  std::string script_sha = {};  // Of kGather: it is loaded.
  // What is sent at once is answered when so many replicas have it (WAIT).
  int replicas = 0;
};

// One connection's view of a protocol. Not thread-safe. Requests are composed
// by hand, so that the client costs as little as the peers' own tools.
class PeerProtocol {
 public:
  virtual ~PeerProtocol() = default;

  virtual void AppendPut(std::string_view key, std::string_view value,
                         std::string* out) const = 0;
  virtual void AppendGet(std::string_view key, std::string* out) const = 0;

  // What follows all requests that are sent at once. Returns how many replies
  // more it has.
  virtual int AppendEnd(std::string*) const { return 0; }

  // Takes what was received.
  virtual void Feed(std::string_view received) = 0;
  // The next whole reply in it.
  virtual Reply Next() = 0;
};

// RESP, read by hiredis; SET with EX, PX or PXAT. Redis expires by the
// millisecond.
std::unique_ptr<PeerProtocol> MakeRedisProtocol(const Expiry& expiry,
                                                const RedisWrite& write = {});

// memcached's text protocol; it expires by the second: a ttl is rounded up.
std::unique_ptr<PeerProtocol> MakeMemcachedProtocol(const Expiry& expiry);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_PEERS_CLIENTS_PEER_PROTOCOL_H_
