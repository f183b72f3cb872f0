#include "server/config/proto_to_yaml.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <yaml-cpp/yaml.h>

#include <vector>

#include "server/common/units.h"
#include "server/config/enum_names.h"
#include "server/service/call/convert.h"

namespace timecache::server {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void EmitMessage(const Message& message, YAML::Emitter* out);

// Calls the getter of a single field, or of the repeated field's element at
// `index`.
#define TIMECACHED_GET(Type)                                                  \
  (field.is_repeated() ? reflection.GetRepeated##Type(message, &field, index) \
                       : reflection.Get##Type(message, &field))

void EmitValue(const Message& message, const FieldDescriptor& field, int index,
               YAML::Emitter* out) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      *out << TIMECACHED_GET(Int32);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      *out << TIMECACHED_GET(Int64);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      *out << TIMECACHED_GET(UInt32);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      *out << TIMECACHED_GET(UInt64);
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      *out << TIMECACHED_GET(Double);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      *out << TIMECACHED_GET(Float);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      *out << TIMECACHED_GET(Bool);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      *out << EnumName(*TIMECACHED_GET(Enum));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      *out << TIMECACHED_GET(String);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const Message& value = TIMECACHED_GET(Message);
      if (field.message_type() == Duration::descriptor()) {
        Duration duration;
        duration.CopyFrom(value);
        *out << DurationText(ToDuration(duration));
      } else {
        EmitMessage(value, out);
      }
      break;
    }
  }
}

#undef TIMECACHED_GET

void EmitMessage(const Message& message, YAML::Emitter* out) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  *out << YAML::BeginMap;
  for (const FieldDescriptor* field : fields) {
    *out << YAML::Key << field->name() << YAML::Value;
    if (!field->is_repeated()) {
      EmitValue(message, *field, 0, out);
      continue;
    }
    *out << YAML::BeginSeq;
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      EmitValue(message, *field, i, out);
    }
    *out << YAML::EndSeq;
  }
  *out << YAML::EndMap;
}

}  // namespace

std::string ProtoToYaml(const Message& message) {
  YAML::Emitter out;
  EmitMessage(message, &out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace timecache::server
