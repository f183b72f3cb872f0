#include "tests/conformance/matcher.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace timecache::conformance {
namespace {

constexpr size_t kShownBytes = 300;

std::string Show(const Json& value) {
  // Bytes have no JSON.
  std::string text =
      value.is_binary() && value.get_binary().size() > kShownBytes
          ? absl::StrCat(value.get_binary().size(), " bytes")
          : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(0, kShownBytes);
}

bool IsDefault(const Json& value) {
  if (value.is_binary()) return value.get_binary().empty();
  return value.is_null() || value == 0 || value == false || value == "" ||
         (value.is_array() && value.empty());
}

bool HasOnly(const Json& value, const char* name) {
  return value.size() == 1 && value.contains(name);
}

void RequireSame(bool same, const Json& got, const Json& expected,
                 const std::string& where) {
  // A text of 16 MiB is made only to be shown.
  if (same) return;
  throw Mismatch(
      absl::StrCat(where, " is ", Show(got), ", expected ", Show(expected)));
}

// "events[0].event_id" has the parts events, [0] and event_id.
const Json& LookUp(const Json& answer, const std::string& path) {
  const Json* at = &answer;
  size_t begin = 0;
  while (begin < path.size()) {
    if (path[begin] == '.') ++begin;
    if (path[begin] == '[') {
      const size_t end = path.find(']', begin);
      at = &at->at(std::stoul(path.substr(begin + 1, end - begin - 1)));
      begin = end + 1;
      continue;
    }
    const size_t end = std::min(path.find_first_of(".[", begin), path.size());
    at = &at->at(path.substr(begin, end - begin));
    begin = end;
  }
  return *at;
}

}  // namespace

const Json& Matcher::Resolve(const Json& argument) const {
  if (!argument.is_object() || !HasOnly(argument, "var")) return argument;
  const auto it = saved_.find(argument["var"]);
  Require(it != saved_.end(), "nothing is saved as " + Show(argument));
  return it->second;
}

void Matcher::Save(const Json& answer, const Json& step) {
  if (!step.contains("save")) return;
  for (const auto& [name, path] : step["save"].items()) {
    saved_[name] = LookUp(answer, path);
  }
}

void Matcher::Match(const Json& got, const Json& expected,
                    const std::string& where) const {
  if (expected.is_object()) return MatchObject(got, expected, where);
  if (expected.is_array()) {
    RequireSame(got.is_array() && got.size() == expected.size(), got, expected,
                where);
    for (size_t i = 0; i < expected.size(); ++i) {
      Match(got[i], expected[i], absl::StrCat(where, "[", i, "]"));
    }
  } else if (expected.is_null()) {
    RequireSame(IsDefault(got), got, expected, where);
  } else if (got.is_null()) {
    RequireSame(IsDefault(expected), got, expected, where);
  } else if (got.is_binary()) {
    RequireSame(Data(got) == Data(expected), got, expected, where);
  } else if (got.is_object() && got.contains("$duration")) {
    RequireSame(got == ToJson(Seconds(expected)), got, expected, where);
  } else if (got.is_number() && expected.is_string()) {
    RequireSame(got.dump() == expected, got, expected, where);
  } else {
    RequireSame(got == expected, got, expected, where);
  }
}

void Matcher::MatchObject(const Json& got, const Json& expected,
                          const std::string& where) const {
  if (HasOnly(expected, "var")) {
    RequireSame(got == Resolve(expected), got, expected, where);
  } else if (HasOnly(expected, "any")) {
    RequireSame(!IsDefault(got), got, expected, where);
  } else if (HasOnly(expected, "gt")) {
    RequireSame(Integer(got) > Integer(Resolve(expected["gt"])), got, expected,
                where);
  } else if (HasOnly(expected, "at")) {
    RequireSame(got == ToJson(start_ + Seconds(expected["at"])), got, expected,
                where);
  } else if (HasOnly(expected, "hex") || expected.contains("repeat")) {
    RequireSame(got.is_binary() && Data(got) == Data(expected), got, expected,
                where);
  } else if (expected.contains("begins")) {
    RequireSame(got.is_binary() &&
                    got.get_binary().size() == expected["size"] &&
                    Data(got).starts_with(Data(expected["begins"])),
                got, expected, where);
  } else if (HasOnly(expected, "unordered")) {
    MatchUnordered(got, expected["unordered"], where);
  } else {
    RequireSame(got.is_object(), got, expected, where);
    for (const auto& [name, value] : expected.items()) {
      Require(got.contains(name), absl::StrCat(where, " has no ", name));
      Match(got[name], value, absl::StrCat(where, ".", name));
    }
  }
}

void Matcher::MatchUnordered(const Json& got, const Json& expected,
                             const std::string& where) const {
  RequireSame(got.is_array() && got.size() == expected.size(), got, expected,
              where);
  std::vector<Json> left(got.begin(), got.end());
  for (const Json& value : expected) {
    const auto it =
        std::find_if(left.begin(), left.end(), [&](const Json& candidate) {
          try {
            Match(candidate, value, where);
            return true;
          } catch (const Mismatch&) {
            return false;
          }
        });
    RequireSame(it != left.end(), got, value, "one of " + where);
    left.erase(it);
  }
}

}  // namespace timecache::conformance
