// The opaque positions from which a scan is continued.

#ifndef TIMECACHED_SERVER_RPC_DATA_SCAN_TOKEN_H_
#define TIMECACHED_SERVER_RPC_DATA_SCAN_TOKEN_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/store/scan.h"

namespace timecache::server {

// Writes and reads ScanResponse.position. Where a walk stands is a part of a
// key's hash, from which a client could learn the map's seed and then choose
// keys that collide: so it is encrypted, with a key of this process. Immutable,
// thread-safe.
class ScanTokens {
 public:
  // The map's id and one block.
  static constexpr size_t kTokenBytes = 8 + 16;

  ScanTokens();

  std::string Encode(const ScanPosition& position,
                     absl::string_view prefix) const;
  // INVALID_ARGUMENT about `position` for bytes that are not of this process,
  // or of a scan of another prefix.
  absl::StatusOr<ScanPosition> Decode(absl::string_view token,
                                      absl::string_view prefix) const;

 private:
  std::array<uint8_t, 16> key_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_SCAN_TOKEN_H_
