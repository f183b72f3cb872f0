#ifndef TIMECACHED_SERVER_EDGE_TOKEN_HASH_H_
#define TIMECACHED_SERVER_EDGE_TOKEN_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace timecache::server {

// SHA-256 of a bearer token: what a server keeps in place of the token. A token
// is random and as long as its hash: there is no dictionary to try, so neither
// salt nor slow hashing would add anything. Thread-safe.
using TokenHash = std::array<uint8_t, 32>;

// Costs a tenth of a microsecond for a token of usual length.
TokenHash HashToken(absl::string_view token);

// Of 64 hexadecimal digits; nothing for any other text.
std::optional<TokenHash> ParseTokenHash(absl::string_view digits);

// In a time that says nothing about them.
bool SameTokenHash(const TokenHash& a, const TokenHash& b);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_TOKEN_HASH_H_
