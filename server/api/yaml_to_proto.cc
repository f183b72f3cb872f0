#include "server/api/yaml_to_proto.h"

#include <cstdint>
#include <limits>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "server/api/enum_names.h"
#include "server/base/edit_distance.h"
#include "server/base/units.h"
#include "server/base/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/yaml.h"

namespace timecache::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Longest part of a value that an error repeats.
constexpr size_t kMaxQuotedBytes = 64;

// With \xNN for all but printable ASCII.
std::string Printable(absl::string_view text) {
  std::string printable;
  for (const char c : text) {
    if (absl::ascii_isprint(static_cast<unsigned char>(c))) {
      printable.push_back(c);
    } else {
      absl::StrAppend(&printable, "\\x",
                      absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
  }
  return printable;
}

std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  // Half a character may be at the end of a part.
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxQuotedBytes)),
                      cut ? "..." : "", "\"");
}

// Checks that the mapper can handle a document, before any of it is built: no
// aliases, which can make a small file huge, no tags, and not too deep.
class DocumentChecker : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(
        mark, "aliases are not supported: write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    throw YAML::ParserException(
        mark, "anchors are not supported: write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string&) override {
    CheckTag(mark, tag);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t, YAML::EmitterStyle::value) override {
    Enter(mark, tag);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t, YAML::EmitterStyle::value) override {
    Enter(mark, tag);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Enter(const YAML::Mark& mark, const std::string& tag) {
    CheckTag(mark, tag);
    if (++depth_ > kMaxYamlDepth) {
      throw YAML::ParserException(
          mark, absl::StrCat("nested more than ", kMaxYamlDepth, " deep"));
    }
  }

  // "?" stands for a plain value without a tag, "!" for a quoted one.
  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw YAML::ParserException(
          mark, absl::StrCat("tags are not supported: remove ", Quoted(tag)));
    }
  }

  int depth_ = 0;
};

// The error text for a key without a field in the message.
std::string UnknownField(const Descriptor& type, absl::string_view key) {
  std::vector<std::string> names;
  const FieldDescriptor* nearest = nullptr;
  size_t nearest_distance = key.size() / 3 + 2;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
    const size_t distance =
        EditDistance(key.substr(0, kMaxQuotedBytes), names.back());
    if (distance < nearest_distance) {
      nearest = type.field(i);
      nearest_distance = distance;
    }
  }
  if (nearest != nullptr) {
    return absl::StrCat("unknown field; did you mean \"", nearest->name(),
                        "\"?");
  }
  return absl::StrCat("unknown field; the fields here are ",
                      absl::StrJoin(names, ", "));
}

bool IsBytesField(const FieldDescriptor& field) {
  return absl::StrContains(field.name(), "bytes");
}

// Sets a number that is no list. Returns what was expected, if `text` is not
// that: decimal digits or, where the field takes bytes, a size.
std::string StoreNumber(Message* message, const FieldDescriptor& field,
                        const std::string& text) {
  const Reflection& reflection = *message->GetReflection();
  const bool is_narrow = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  const uint64_t most = is_narrow ? std::numeric_limits<uint32_t>::max()
                                  : std::numeric_limits<uint64_t>::max();
  uint64_t value = 0;
  bool is_number = !text.empty() && absl::c_all_of(text, absl::ascii_isdigit) &&
                   absl::SimpleAtoi(text, &value);
  if (const auto size = ParseSize(text);
      !is_number && IsBytesField(field) && size.ok()) {
    is_number = true;
    value = *size;
  }
  if (!is_number || value > most) {
    return absl::StrCat("a whole number from 0 to ", most,
                        IsBytesField(field)
                            ? ", or with a unit: 512B, 64KiB, 64MiB, 1GiB"
                            : "");
  }
  if (is_narrow) {
    reflection.SetUInt32(message, &field, static_cast<uint32_t>(value));
  } else {
    reflection.SetUInt64(message, &field, value);
  }
  return "";
}

// The same of any field that is no message, and adds to a list of strings or
// enums.
std::string StoreScalar(Message* message, const FieldDescriptor& field,
                        const std::string& text) {
  const Reflection& reflection = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return StoreNumber(message, field, text);
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return "true or false";
      reflection.SetBool(message, &field, text == "true");
      return "";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value =
          FindEnumValue(*field.enum_type(), text);
      if (value == nullptr) {
        return absl::StrJoin(EnumNames(*field.enum_type()), ", ");
      }
      field.is_repeated() ? reflection.AddEnum(message, &field, value)
                          : reflection.SetEnum(message, &field, value);
      return "";
    }
    case FieldDescriptor::CPPTYPE_STRING:
      // yaml-cpp turns the escapes \N and \_ into single bytes.
      if (FindInvalidUtf8(text) != absl::string_view::npos) {
        return "UTF-8, with the characters themselves for \\N and \\_";
      }
      field.is_repeated() ? reflection.AddString(message, &field, text)
                          : reflection.SetString(message, &field, text);
      return "";
    default:
      return "a value";
  }
}

bool IsDuration(const FieldDescriptor& field) {
  return field.message_type() == google::protobuf::Duration::descriptor();
}

bool IsStructured(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !IsDuration(field);
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

Message* MutableOrAdded(Message* message, const FieldDescriptor& field) {
  const Reflection& reflection = *message->GetReflection();
  return field.is_repeated() ? reflection.AddMessage(message, &field)
                             : reflection.MutableMessage(message, &field);
}

class Mapper {
 public:
  Mapper(absl::string_view source_name, FieldLines* lines)
      : source_name_(source_name), lines_(lines) {}

  // `path` is the message's full name, empty for the whole text.
  absl::Status FillMessage(const YAML::Node& node, const std::string& path,
                           int line, Message* message) {
    if (node.IsNull()) return absl::OkStatus();
    if (!node.IsMap()) {
      return Error(line, path, "expected fields, as \"name: value\"");
    }
    absl::flat_hash_set<const FieldDescriptor*> seen;
    for (const auto& entry : node) {
      const int entry_line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) {
        return Error(entry_line, path, "a field's name must be a plain word");
      }
      const std::string& key = entry.first.Scalar();
      const std::string key_path =
          path.empty() ? key : absl::StrCat(path, ".", key);
      const FieldDescriptor* field =
          message->GetDescriptor()->FindFieldByName(key);
      if (field == nullptr) {
        return Error(entry_line, key_path,
                     UnknownField(*message->GetDescriptor(), key));
      }
      if (!seen.insert(field).second) {
        return Error(entry_line, key_path, "given twice: keep one of them");
      }
      absl::Status filled =
          FillField(entry.second, key_path, entry_line, *field, message);
      if (!filled.ok()) return filled;
    }
    return absl::OkStatus();
  }

  absl::Status Error(int line, absl::string_view path,
                     absl::string_view what) const {
    // A key may hold anything.
    return absl::InvalidArgumentError(absl::StrCat(
        source_name_, ":", line, ": ", absl::Utf8SafeCHexEscape(path),
        path.empty() ? "" : ": ", what));
  }

 private:
  absl::Status FillField(const YAML::Node& node, const std::string& path,
                         int line, const FieldDescriptor& field,
                         Message* message) {
    if (!field.is_repeated()) {
      return FillValue(node, path, line, field, message);
    }
    Remember(path, line);
    if (node.IsNull()) return absl::OkStatus();
    if (field.is_map()) return FillMap(node, path, line, field, message);
    if (!node.IsSequence()) {
      return Error(line, path, "expected a list, as \"- item\"");
    }
    int index = 0;
    for (const YAML::Node& item : node) {
      const std::string item_path = absl::StrCat(path, "[", index++, "]");
      const int item_line = item.Mark().line + 1;
      // An empty item has the mark of the next item: report the list's line.
      if (item.IsNull()) return Error(line, item_path, "has no value");
      absl::Status filled =
          FillValue(item, item_path, item_line, field, message);
      if (!filled.ok()) return filled;
    }
    return absl::OkStatus();
  }

  // The only maps are those of strings to strings.
  absl::Status FillMap(const YAML::Node& node, const std::string& path,
                       int line, const FieldDescriptor& field,
                       Message* message) {
    if (!node.IsMap()) {
      return Error(line, path, "expected names, as \"name: value\"");
    }
    const FieldDescriptor& value = *field.message_type()->map_value();
    absl::flat_hash_set<std::string> seen;
    for (const auto& item : node) {
      const int item_line = item.first.Mark().line + 1;
      if (!item.first.IsScalar()) {
        return Error(item_line, path, "a name must be a plain word");
      }
      const std::string& name = item.first.Scalar();
      const std::string item_path = absl::StrCat(path, "[", name, "]");
      if (!seen.insert(name).second) {
        return Error(item_line, item_path, "given twice: keep one of them");
      }
      Message* const entry = MutableOrAdded(message, field);
      const std::string expected =
          StoreScalar(entry, *field.message_type()->map_key(), name);
      if (!expected.empty()) {
        return Error(item_line, item_path, "expected " + expected);
      }
      absl::Status filled =
          FillValue(item.second, item_path, item_line, value, entry);
      if (!filled.ok()) return filled;
    }
    return absl::OkStatus();
  }

  absl::Status FillValue(const YAML::Node& node, const std::string& path,
                         int line, const FieldDescriptor& field,
                         Message* message) {
    Remember(path, line);
    if (IsStructured(field)) {
      return FillMessage(node, path, line, MutableOrAdded(message, field));
    }
    if (node.IsNull()) return Error(line, path, "has no value");
    if (!node.IsScalar()) return Error(line, path, "expected one value");
    const std::string& text = node.Scalar();
    if (IsDuration(field)) {
      auto duration = ParseDuration(text);
      if (!duration.ok()) return Error(line, path, duration.status().message());
      MutableOrAdded(message, field)->CopyFrom(ToProto(*duration));
      return absl::OkStatus();
    }
    const std::string expected = StoreScalar(message, field, text);
    if (expected.empty()) return absl::OkStatus();
    return Error(line, path,
                 absl::StrCat("expected ", expected, ", got ", Quoted(text)));
  }

  void Remember(const std::string& path, int line) {
    if (lines_ != nullptr) (*lines_)[path] = line;
  }

  const absl::string_view source_name_;
  FieldLines* const lines_;
};

}  // namespace

absl::Status YamlToProto(absl::string_view yaml, absl::string_view source_name,
                         Message* message, FieldLines* lines) {
  if (yaml.size() > kMaxYamlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source_name, ": larger than ", kMaxYamlBytes,
                     " bytes, the most that is read"));
  }
  Mapper mapper(source_name, lines);
  const size_t invalid = FindInvalidUtf8(yaml);
  if (invalid != absl::string_view::npos) {
    const auto line =
        std::count(yaml.begin(), yaml.begin() + invalid, '\n') + 1;
    return mapper.Error(static_cast<int>(line), "", "is not UTF-8");
  }
  try {
    const std::string text(yaml);
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentChecker checker;
    parser.HandleNextDocument(checker);
    if (parser) {
      return absl::InvalidArgumentError(
          absl::StrCat(source_name, ": has more than one document: keep one"));
    }
    return mapper.FillMessage(YAML::Load(text), "", 1, message);
  } catch (const YAML::Exception& e) {
    // It may quote a byte of the text: a line's end, half of a character.
    return mapper.Error(e.mark.is_null() ? 1 : e.mark.line + 1, "",
                        Printable(e.msg));
  }
}

}  // namespace timecache::server
