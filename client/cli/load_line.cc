#include "client/cli/load_line.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/units.h"
#include "nlohmann/json.hpp"

namespace timecache::cli {
namespace {

using Object = nlohmann::json;

constexpr std::string_view kKnownFields[] = {
    "key",   "key_hex",   "key_base64",   "ttl",      "version",
    "value", "value_hex", "value_base64", "put_time", "deadline"};

// The bytes of NAME, NAME_hex or NAME_base64, of which exactly one must be
// there.
absl::StatusOr<std::string> TakeBytes(const Object& object,
                                      const std::string& name) {
  const std::pair<std::string, Encoding> forms[] = {
      {name, Encoding::kText},
      {name + "_hex", Encoding::kHex},
      {name + "_base64", Encoding::kBase64}};
  const std::string* text = nullptr;
  Encoding encoding = Encoding::kText;
  for (const auto& [field, form] : forms) {
    const auto it = object.find(field);
    if (it == object.end()) continue;
    if (text != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is there twice"));
    }
    text = it->get_ptr<const std::string*>();
    if (text == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " is not a string"));
    }
    encoding = form;
  }
  if (text == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no ", name));
  }
  absl::StatusOr<std::string> bytes = Decode(*text, encoding);
  if (bytes.ok()) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", bytes.status().message()));
}

}  // namespace

LoadFormat GuessFormat(std::string_view first_line) {
  const size_t first = first_line.find_first_not_of(" \t");
  return first != std::string_view::npos && first_line[first] == '{'
             ? LoadFormat::kJson
             : LoadFormat::kTsv;
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

absl::StatusOr<LoadEntry> ParseTsvLine(std::string_view line,
                                       Encoding encoding) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    return absl::InvalidArgumentError("no tab between key and value");
  }
  if (tab == 0) return absl::InvalidArgumentError("key is empty");
  absl::StatusOr<std::string> key = Decode(line.substr(0, tab), encoding);
  if (!key.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("key: ", key.status().message()));
  }
  absl::StatusOr<std::string> value = Decode(line.substr(tab + 1), encoding);
  if (!value.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("value: ", value.status().message()));
  }
  return LoadEntry{.key = *std::move(key), .value = *std::move(value)};
}

absl::StatusOr<LoadEntry> ParseJsonLine(std::string_view line) {
  const Object object = Object::parse(line, nullptr, false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  for (const auto& [name, unused] : object.items()) {
    if (std::ranges::find(kKnownFields, name) == std::end(kKnownFields)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown field \"", Escape(name), "\""));
    }
  }
  absl::StatusOr<std::string> key = TakeBytes(object, "key");
  if (!key.ok()) return key.status();
  if (key->empty()) return absl::InvalidArgumentError("key is empty");
  absl::StatusOr<std::string> value = TakeBytes(object, "value");
  if (!value.ok()) return value.status();
  LoadEntry entry = {.key = *std::move(key), .value = *std::move(value)};
  if (const auto it = object.find("ttl"); it != object.end()) {
    const std::string* text = it->get_ptr<const std::string*>();
    if (text == nullptr) {
      return absl::InvalidArgumentError("ttl is not a string such as \"30s\"");
    }
    const absl::StatusOr<absl::Duration> ttl = ParseDuration(*text);
    if (!ttl.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("ttl: ", ttl.status().message()));
    }
    entry.ttl = *ttl;
  }
  return entry;
}

}  // namespace timecache::cli
