#include "server/api/proto_to_text.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "nlohmann/json.hpp"
#include "server/api/enum_names.h"
#include "server/api/proto_time.h"
#include "server/base/units.h"
#include "yaml-cpp/yaml.h"

namespace timecache::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using nlohmann::ordered_json;

ordered_json ToObject(const Message& message);

// Calls the getter of a single field, or of the repeated field's element at
// `index`.
#define TIMECACHED_GET(Type)                                                  \
  (field.is_repeated() ? reflection.GetRepeated##Type(message, &field, index) \
                       : reflection.Get##Type(message, &field))

ordered_json ToValue(const Message& message, const FieldDescriptor& field,
                     int index) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return TIMECACHED_GET(UInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return TIMECACHED_GET(UInt64);
    case FieldDescriptor::CPPTYPE_BOOL:
      return TIMECACHED_GET(Bool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(*TIMECACHED_GET(Enum));
    case FieldDescriptor::CPPTYPE_STRING:
      return TIMECACHED_GET(String);
    default:
      break;
  }
  const Message& value = TIMECACHED_GET(Message);
  if (field.message_type() != Duration::descriptor()) return ToObject(value);
  Duration duration;
  duration.CopyFrom(value);
  return DurationText(ToDuration(duration));
}

#undef TIMECACHED_GET

// Of strings to strings, by name.
ordered_json ToMap(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::map<std::string, ordered_json> entries;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    entries[entry.GetReflection()->GetString(entry,
                                             field.message_type()->map_key())] =
        ToValue(entry, *field.message_type()->map_value(), 0);
  }
  ordered_json object = ordered_json::object();
  for (auto& [name, value] : entries) object[name] = std::move(value);
  return object;
}

ordered_json ToObject(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  ordered_json object = ordered_json::object();
  for (const FieldDescriptor* field : fields) {
    ordered_json& value = object[field->name()];
    if (!field->is_repeated()) {
      value = ToValue(message, *field, 0);
      continue;
    }
    if (field->is_map()) {
      value = ToMap(message, *field);
      continue;
    }
    value = ordered_json::array();
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      value.push_back(ToValue(message, *field, i));
    }
  }
  return object;
}

void Emit(const ordered_json& value, YAML::Emitter* out) {
  if (value.is_object()) {
    *out << YAML::BeginMap;
    for (const auto& [name, field] : value.items()) {
      *out << YAML::Key << name << YAML::Value;
      Emit(field, out);
    }
    *out << YAML::EndMap;
  } else if (value.is_array()) {
    *out << YAML::BeginSeq;
    for (const ordered_json& element : value) Emit(element, out);
    *out << YAML::EndSeq;
  } else if (value.is_string()) {
    *out << value.get_ref<const std::string&>();
  } else {
    // YAML has JSON's numbers and booleans.
    *out << value.dump();
  }
}

}  // namespace

std::string ProtoToJson(const Message& message) {
  return ToObject(message).dump(-1, ' ', /*ensure_ascii=*/true,
                                ordered_json::error_handler_t::replace);
}

std::string ProtoToYaml(const Message& message) {
  YAML::Emitter out;
  Emit(ToObject(message), &out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace timecache::server
