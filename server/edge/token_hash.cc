#include "server/edge/token_hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "server/base/check.h"

namespace timecache::server {

TokenHash HashToken(absl::string_view token) {
  // Fetched once: OpenSSL 3 would do it, under a lock, for each hash.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  TokenHash hash;
  unsigned int size = 0;
  TIMECACHED_CHECK(EVP_Digest(token.data(), token.size(), hash.data(), &size,
                              sha256, nullptr) == 1 &&
                   size == hash.size());
  return hash;
}

std::optional<TokenHash> ParseTokenHash(absl::string_view digits) {
  TokenHash hash;
  if (digits.size() != 2 * hash.size()) return std::nullopt;
  for (const char c : digits) {
    if (!absl::ascii_isxdigit(c)) return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(digits);
  std::memcpy(hash.data(), bytes.data(), hash.size());
  return hash;
}

bool SameTokenHash(const TokenHash& a, const TokenHash& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace timecache::server
