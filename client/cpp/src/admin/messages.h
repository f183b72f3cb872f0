// Structs of fields.h from and to messages. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_ADMIN_MESSAGES_H_
#define TIMECACHED_CLIENT_CPP_SRC_ADMIN_MESSAGES_H_

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/src/admin/fields.h"
#include "client/cpp/src/data/convert.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/message.h"

namespace timecache {

// One field of a message.
class MessageField {
 public:
  MessageField(const google::protobuf::Message& message, const char* name)
      : message_(message),
        reflection_(*message.GetReflection()),
        field_(*message.GetDescriptor()->FindFieldByName(name)) {}

  template <typename T>
  void Read(std::optional<T>& value) const {
    // An enum's value may be one that only a later server has.
    if (!reflection_.HasField(message_, &field_)) return;
    if (field_.enum_type() != nullptr &&
        field_.enum_type()->FindValueByNumber(EnumNumber()) == nullptr) {
      return;
    }
    Read(value.emplace());
  }
  // A list is always set.
  void Read(std::optional<std::vector<absl::Duration>>& value) const {
    value.emplace();
    for (int i = 0; i < reflection_.FieldSize(message_, &field_); ++i) {
      value->push_back(FromProto(static_cast<const google::protobuf::Duration&>(
          reflection_.GetRepeatedMessage(message_, &field_, i))));
    }
  }
  void Read(bool& value) const {
    value = reflection_.GetBool(message_, &field_);
  }
  void Read(uint32_t& value) const {
    value = reflection_.GetUInt32(message_, &field_);
  }
  void Read(uint64_t& value) const {
    value = reflection_.GetUInt64(message_, &field_);
  }
  void Read(std::string& value) const {
    value = reflection_.GetString(message_, &field_);
  }
  void Read(absl::Duration& value) const {
    value = FromProto(Sub<google::protobuf::Duration>());
  }
  void Read(absl::Time& value) const {
    value = FromProto(Sub<google::protobuf::Timestamp>());
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Read(Enum& value) const {
    value = static_cast<Enum>(EnumNumber() - kEnumOffset<Enum>);
  }
  template <typename Struct>
  requires std::is_class_v<Struct>
  void Read(Struct& value) const;

  // In a message that this field's may be written to.
  void Write(google::protobuf::Message& to, bool value) const {
    reflection_.SetBool(&to, &field_, value);
  }
  void Write(google::protobuf::Message& to, uint32_t value) const {
    reflection_.SetUInt32(&to, &field_, value);
  }
  void Write(google::protobuf::Message& to, uint64_t value) const {
    reflection_.SetUInt64(&to, &field_, value);
  }
  void Write(google::protobuf::Message& to, const std::string& value) const {
    reflection_.SetString(&to, &field_, value);
  }
  void Write(google::protobuf::Message& to, absl::Duration value) const {
    reflection_.MutableMessage(&to, &field_)->CopyFrom(ToProto(value));
  }
  void Write(google::protobuf::Message& to,
             const std::vector<absl::Duration>& values) const {
    for (const absl::Duration value : values) {
      reflection_.AddMessage(&to, &field_)->CopyFrom(ToProto(value));
    }
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Write(google::protobuf::Message& to, Enum value) const {
    reflection_.SetEnumValue(&to, &field_,
                             static_cast<int>(value) + kEnumOffset<Enum>);
  }

 private:
  template <typename Message>
  const Message& Sub() const {
    return static_cast<const Message&>(
        reflection_.GetMessage(message_, &field_));
  }
  int EnumNumber() const { return reflection_.GetEnumValue(message_, &field_); }

  const google::protobuf::Message& message_;
  const google::protobuf::Reflection& reflection_;
  const google::protobuf::FieldDescriptor& field_;
};

template <typename Struct>
Struct FromMessage(const google::protobuf::Message& message) {
  Struct result;
  ForEachField(result, [&message](const char* name, auto& field) {
    MessageField(message, name).Read(field);
  });
  return result;
}

template <typename Struct>
requires std::is_class_v<Struct>
void MessageField::Read(Struct& value) const {
  value = FromMessage<Struct>(reflection_.GetMessage(message_, &field_));
}

// The options that are set.
template <typename Message, typename Options>
Message ToMessage(const Options& options) {
  Message message;
  ForEachField(options, [&message](const char* name, const auto& field) {
    if (field) MessageField(message, name).Write(message, *field);
  });
  return message;
}

// Makes the request change the options that are set, and reset those that
// `to_default` names to their defaults, unless they are set. A request that
// names none needs no mask.
template <typename Request>
void SetUpdateMask(const google::protobuf::Message& options,
                   const std::vector<std::string>& to_default,
                   Request& request) {
  if (to_default.empty()) return;
  std::vector<const google::protobuf::FieldDescriptor*> set;
  options.GetReflection()->ListFields(options, &set);
  std::vector<std::string> names = to_default;
  for (const auto* field : set) names.push_back(field->name());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    request.mutable_update_mask()->add_paths("options." + name);
  }
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_ADMIN_MESSAGES_H_
