#include "server/rpc/data/scan_token.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstring>
#include <memory>

#include "server/base/check.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

// What is encrypted: one block of the cipher.
struct ScanBlock {
  uint16_t shard = 0;
  uint16_t partition = 0;
  // Of the map and the prefix.
  uint32_t check = 0;
  // Tag and rest.
  uint64_t hash = 0;
};
static_assert(sizeof(ScanBlock) == 16);

constexpr int kScanRestBits = 42;
constexpr uint64_t kScanRest = (uint64_t{1} << kScanRestBits) - 1;

// FNV-1a. What it must not be chosen for is encrypted.
uint32_t ScanCheck(uint64_t map, absl::string_view prefix) {
  uint64_t sum = 0xcbf29ce484222325 ^ map;
  for (const char byte : prefix) {
    sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return static_cast<uint32_t>(sum ^ (sum >> 32));
}

ScanBlock Crypt(const uint8_t* key, ScanBlock block, bool encrypt) {
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> cipher(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  ScanBlock out;
  int size = 0;
  // Of a whole block, with a key that is there: they do not fail.
  TIMECACHED_CHECK(cipher != nullptr);
  TIMECACHED_CHECK(EVP_CipherInit_ex(cipher.get(), EVP_aes_128_ecb(), nullptr,
                                     key, nullptr, encrypt ? 1 : 0) == 1);
  EVP_CIPHER_CTX_set_padding(cipher.get(), 0);
  TIMECACHED_CHECK(EVP_CipherUpdate(cipher.get(),
                                    reinterpret_cast<uint8_t*>(&out), &size,
                                    reinterpret_cast<const uint8_t*>(&block),
                                    sizeof(block)) == 1 &&
                   size == sizeof(block));
  return out;
}

}  // namespace

ScanTokens::ScanTokens() {
  TIMECACHED_CHECK(RAND_bytes(key_.data(), static_cast<int>(key_.size())) == 1);
}

std::string ScanTokens::Encode(const ScanPosition& position,
                               absl::string_view prefix) const {
  const ScanBlock block =
      Crypt(key_.data(),
            {.shard = static_cast<uint16_t>(position.shard),
             .partition = static_cast<uint16_t>(position.partition),
             .check = ScanCheck(position.map, prefix),
             .hash = (uint64_t{position.tag} << kScanRestBits) + position.rest},
            true);
  std::string token(kTokenBytes, '\0');
  std::memcpy(token.data(), &position.map, sizeof(position.map));
  std::memcpy(token.data() + sizeof(position.map), &block, sizeof(block));
  return token;
}

absl::StatusOr<ScanPosition> ScanTokens::Decode(
    absl::string_view token, absl::string_view prefix) const {
  ScanPosition position;
  ScanBlock block;
  if (token.size() == kTokenBytes) {
    std::memcpy(&position.map, token.data(), sizeof(position.map));
    std::memcpy(&block, token.data() + sizeof(position.map), sizeof(block));
    block = Crypt(key_.data(), block, false);
    if (block.check == ScanCheck(position.map, prefix)) {
      position.partition = block.partition;
      position.shard = block.shard;
      position.tag = static_cast<uint32_t>(block.hash >> kScanRestBits);
      position.rest = block.hash & kScanRest;
      return position;
    }
  }
  return InvalidField(
      "position",
      "is not one that this server has sent for this key_prefix since it "
      "started: send the bytes of ScanResponse.position unchanged, or begin "
      "the scan again, without a position");
}

}  // namespace timecache::server
