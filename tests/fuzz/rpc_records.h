// Bytes as calls: records of the number of a method, the size of a message in
// two bytes, and the message. Records of a method that takes a stream, one
// behind the other, are one call.

#ifndef TIMECACHED_TESTS_FUZZ_RPC_RECORDS_H_
#define TIMECACHED_TESTS_FUZZ_RPC_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace timecache::fuzz {

inline constexpr size_t kMaxRecords = 32;

struct RpcRecord {
  uint8_t method;
  std::string message;
};

inline std::vector<RpcRecord> Records(std::string_view bytes) {
  constexpr size_t kHeaderBytes = 3;
  std::vector<RpcRecord> records;
  while (bytes.size() >= kHeaderBytes && records.size() < kMaxRecords) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    const uint8_t method = byte(0);
    const size_t size = byte(1) | size_t{byte(2)} << 8;
    bytes.remove_prefix(kHeaderBytes);
    records.push_back({method, std::string(bytes.substr(0, size))});
    bytes.remove_prefix(records.back().message.size());
  }
  return records;
}

// The messages of the call that begins with record `*i`, which becomes that of
// its last one.
inline std::vector<std::string> MessagesOfCall(
    const std::vector<RpcRecord>& records, bool client_streaming, size_t* i) {
  const uint8_t method = records[*i].method;
  std::vector<std::string> messages = {records[*i].message};
  while (client_streaming && *i + 1 < records.size() &&
         records[*i + 1].method == method) {
    messages.push_back(records[++*i].message);
  }
  return messages;
}

}  // namespace timecache::fuzz

#endif  // TIMECACHED_TESTS_FUZZ_RPC_RECORDS_H_
