// Keys of what belongs to one structure: NAME/MEMBER. Internal to the client.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace timecache {

inline std::string KeyPrefix(std::string_view name) {
  std::string prefix(name);
  prefix += '/';
  return prefix;
}

inline std::string MemberKey(const std::string& prefix,
                             std::string_view member) {
  std::string key;
  key.reserve(prefix.size() + member.size());
  key += prefix;
  key += member;
  return key;
}

// Of which member a key is.
inline std::optional<std::string> MemberOfKey(const std::string& prefix,
                                              std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  return std::string(key.substr(prefix.size()));
}

}  // namespace timecache
