// Keys of what belongs to one structure: NAME/MEMBER. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RECIPES_MEMBER_KEY_H_
#define TIMECACHED_CLIENT_CPP_SRC_RECIPES_MEMBER_KEY_H_

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

// The member of a key.
inline std::optional<std::string> MemberOfKey(const std::string& prefix,
                                              std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  return std::string(key.substr(prefix.size()));
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RECIPES_MEMBER_KEY_H_
