#include "client/cli/dump/load_line.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/ui/units.h"
#include "nlohmann/json.hpp"

namespace timecache::cli {
namespace {

using Object = nlohmann::json;

constexpr std::string_view kKnownFields[] = {"key",
                                             "key_hex",
                                             "key_base64",
                                             "value",
                                             "value_hex",
                                             "put_time",
                                             "value_base64",
                                             "deadline",
                                             "left_ms",
                                             "version",
                                             "ttl",
                                             "parts",
                                             "expected_parts",
                                             "expected_names",
                                             "own_ttl",
                                             "create_time"};

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
      return absl::InvalidArgumentError(absl::StrCat(name, " is given twice"));
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

// The objects of an array, or nothing if there is none of this name.
absl::StatusOr<std::vector<Object>> TakeObjects(const Object& object,
                                                const std::string& name) {
  std::vector<Object> objects;
  if (!object.contains(name)) return objects;
  if (!object[name].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not an array"));
  }
  for (const Object& each : object[name]) {
    if (!each.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has an element that is not an object"));
    }
    objects.push_back(each);
  }
  return objects;
}

// As SetParts has written them.
absl::StatusOr<GatheredParts> TakeParts(const Object& object) {
  GatheredParts result;
  const auto parts = TakeObjects(object, "parts");
  if (!parts.ok()) return parts.status();
  for (const Object& each : *parts) {
    auto name = TakeBytes(each, "name");
    if (!name.ok()) return name.status();
    auto value = TakeBytes(each, "value");
    if (!value.ok()) return value.status();
    result.parts.push_back(
        {.name = *std::move(name), .value = *std::move(value)});
  }
  const auto names = TakeObjects(object, "expected_names");
  if (!names.ok()) return names.status();
  for (const Object& each : *names) {
    auto name = TakeBytes(each, "name");
    if (!name.ok()) return name.status();
    result.expected_names.push_back(*std::move(name));
  }
  if (const auto it = object.find("expected_parts"); it != object.end()) {
    if (!it->is_number_unsigned() || it->get<uint64_t>() > UINT32_MAX) {
      return absl::InvalidArgumentError("expected_parts is not a number");
    }
    result.expected_parts = it->get<uint32_t>();
  }
  const size_t expected = result.expected_names.empty()
                              ? result.expected_parts
                              : result.expected_names.size();
  if (result.parts.empty() || result.parts.size() >= expected) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts: ", result.parts.size(), " of ", expected,
                     " are nothing that is still collected"));
  }
  return result;
}

// A duration as it is written, or nothing if there is none of this name.
absl::Status TakeDuration(const Object& object, const char* name,
                          std::optional<absl::Duration>* to) {
  const auto it = object.find(name);
  if (it == object.end()) return absl::OkStatus();
  const auto* const text = it->get_ptr<const std::string*>();
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is not a string such as \"30s\""));
  }
  const absl::StatusOr<absl::Duration> duration = ParseDuration(*text);
  if (!duration.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", duration.status().message()));
  }
  *to = *duration;
  return absl::OkStatus();
}

absl::Status TakeTimes(const Object& object, LoadEntry& entry) {
  for (const char* other : {"deadline", "own_ttl"}) {
    if (!object.contains("ttl") || !object.contains(other)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ttl and ", other, ": give one of them"));
  }
  absl::Status status = TakeDuration(object, "ttl", &entry.ttl);
  if (status.ok()) status = TakeDuration(object, "own_ttl", &entry.own_ttl);
  if (!status.ok() || !object.contains("deadline")) return status;
  const auto* const text = object["deadline"].get_ptr<const std::string*>();
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        "deadline is not a string such as \"2025-01-31T12:00:00Z\"");
  }
  const absl::StatusOr<absl::Time> deadline = ParseTime(*text);
  if (!deadline.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("deadline: ", deadline.status().message()));
  }
  entry.deadline = *deadline;
  return absl::OkStatus();
}

}  // namespace

LoadFormat GuessFormat(std::string_view first_line) {
  const size_t first = first_line.find_first_not_of(" \t");
  if (first == std::string_view::npos || first_line[first] != '{') {
    return LoadFormat::kTsv;
  }
  // A key may begin with a brace, too. Within its strings JSON has no tab.
  const bool may_be_tsv = first_line.find('\t', first) != first_line.npos;
  return may_be_tsv && !Object::accept(first_line) ? LoadFormat::kTsv
                                                   : LoadFormat::kJson;
}

bool IsBlank(std::string_view line, LoadFormat format) {
  return line.find_first_not_of(format == LoadFormat::kJson
                                    ? " \t\r"
                                    : " \r") == std::string_view::npos;
}

absl::StatusOr<LoadEntry> ParseTsvLine(std::string_view line,
                                       const Encodings& encodings,
                                       bool is_raw) {
  const auto decode = [is_raw](const char* name, std::string_view text,
                               Encoding encoding) {
    absl::StatusOr<std::string> bytes = encoding == Encoding::kText && !is_raw
                                            ? Unescape(text)
                                            : Decode(text, encoding);
    if (!bytes.ok()) {
      bytes = absl::InvalidArgumentError(
          absl::StrCat(name, ": ", bytes.status().message()));
    }
    return bytes;
  };
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    return absl::InvalidArgumentError("no tab between key and value");
  }
  if (tab == 0) return absl::InvalidArgumentError("key is empty");
  auto key = decode("key", line.substr(0, tab), encodings.key);
  if (!key.ok()) return key.status();
  auto value = decode("value", line.substr(tab + 1), encodings.value);
  if (!value.ok()) return value.status();
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
  LoadEntry entry = {.key = *std::move(key)};
  if (object.contains("parts")) {
    auto parts = TakeParts(object);
    if (!parts.ok()) return parts.status();
    entry.parts = *std::move(parts);
  } else {
    absl::StatusOr<std::string> value = TakeBytes(object, "value");
    if (!value.ok()) return value.status();
    entry.value = *std::move(value);
  }
  const absl::Status times = TakeTimes(object, entry);
  if (!times.ok()) return times;
  return entry;
}

}  // namespace timecache::cli
