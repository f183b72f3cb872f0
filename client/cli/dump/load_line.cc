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
                                             "traceparent",
                                             "create_time"};

// Ends the parsing of a line.
template <typename... Parts>
[[noreturn]] void Refuse(const Parts&... parts) {
  throw absl::BadStatusOrAccess(
      absl::InvalidArgumentError(absl::StrCat(parts...)));
}

// The value, or the error with the field's name before it.
template <typename T>
T ValueOf(const std::string& field, absl::StatusOr<T> value) {
  if (!value.ok()) Refuse(field, ": ", value.status().message());
  return *std::move(value);
}

// Null if there is none of this name.
const std::string* FindText(const Object& object, const std::string& field,
                            const char* example) {
  const auto it = object.find(field);
  if (it == object.end()) return nullptr;
  const auto* const text = it->get_ptr<const std::string*>();
  if (text == nullptr) Refuse(field, " is not a string", example);
  return text;
}

// The bytes of NAME, NAME_hex or NAME_base64, of which exactly one must be
// there.
std::string TakeBytes(const Object& object, const std::string& name) {
  const std::pair<std::string, Encoding> forms[] = {
      {name, Encoding::kText},
      {name + "_hex", Encoding::kHex},
      {name + "_base64", Encoding::kBase64}};
  const std::string* text = nullptr;
  Encoding encoding = Encoding::kText;
  for (const auto& [field, form] : forms) {
    const std::string* const found = FindText(object, field, "");
    if (found == nullptr) continue;
    if (text != nullptr) Refuse(name, " is given twice");
    text = found;
    encoding = form;
  }
  if (text == nullptr) Refuse("no ", name);
  return ValueOf(name, Decode(*text, encoding));
}

// The objects of an array, or nothing if there is none of this name.
std::vector<Object> TakeObjects(const Object& object, const std::string& name) {
  std::vector<Object> objects;
  if (!object.contains(name)) return objects;
  if (!object[name].is_array()) Refuse(name, " is not an array");
  for (const Object& each : object[name]) {
    if (!each.is_object()) {
      Refuse(name, " has an element that is not an object");
    }
    objects.push_back(each);
  }
  return objects;
}

// As SetParts has written them.
GatheredParts TakeParts(const Object& object) {
  GatheredParts result;
  for (const Object& each : TakeObjects(object, "parts")) {
    result.parts.push_back(
        {.name = TakeBytes(each, "name"), .value = TakeBytes(each, "value")});
  }
  for (const Object& each : TakeObjects(object, "expected_names")) {
    result.expected_names.push_back(TakeBytes(each, "name"));
  }
  if (const auto it = object.find("expected_parts"); it != object.end()) {
    if (!it->is_number_unsigned() || it->get<uint64_t>() > UINT32_MAX) {
      Refuse("expected_parts is not a number");
    }
    result.expected_parts = it->get<uint32_t>();
  }
  const size_t expected = result.expected_names.empty()
                              ? result.expected_parts
                              : result.expected_names.size();
  if (result.parts.empty() || result.parts.size() >= expected) {
    Refuse("parts: ", result.parts.size(), " of ", expected,
           " are nothing that is still collected");
  }
  return result;
}

std::optional<absl::Duration> TakeDuration(const Object& object,
                                           const std::string& name) {
  const std::string* const text = FindText(object, name, " such as \"30s\"");
  if (text == nullptr) return std::nullopt;
  return ValueOf(name, ParseDuration(*text));
}

void TakeTimes(const Object& object, LoadEntry& entry) {
  for (const char* other : {"deadline", "own_ttl"}) {
    if (object.contains("ttl") && object.contains(other)) {
      Refuse("ttl and ", other, ": give one of them");
    }
  }
  entry.ttl = TakeDuration(object, "ttl");
  entry.own_ttl = TakeDuration(object, "own_ttl");
  const std::string* const deadline =
      FindText(object, "deadline", " such as \"2025-01-31T12:00:00Z\"");
  if (deadline != nullptr) {
    entry.deadline = ValueOf("deadline", ParseTime(*deadline));
  }
}

LoadEntry TakeEntry(const Object& object) {
  if (!object.is_object()) Refuse("not a JSON object");
  for (const auto& [name, unused] : object.items()) {
    if (std::ranges::find(kKnownFields, name) == std::end(kKnownFields)) {
      Refuse("unknown field \"", Escape(name), "\"");
    }
  }
  LoadEntry entry = {.key = TakeBytes(object, "key")};
  if (entry.key.empty()) Refuse("key is empty");
  if (object.contains("parts")) {
    entry.parts = TakeParts(object);
  } else {
    entry.value = TakeBytes(object, "value");
  }
  TakeTimes(object, entry);
  if (const std::string* const text = FindText(object, "traceparent", "")) {
    entry.traceparent = *text;
  }
  return entry;
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
  try {
    return TakeEntry(Object::parse(line, nullptr, false));
  } catch (const absl::BadStatusOrAccess& refused) {
    return refused.status();
  }
}

}  // namespace timecache::cli
