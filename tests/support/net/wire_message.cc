#include "tests/support/net/wire_message.h"

#include <cstdint>
#include <utility>

namespace timecache {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;
constexpr int kFixed32 = 5;

// Beyond what any message here has, and what fits into a tag of one byte.
constexpr int kUnknownField = 15;
constexpr int kUnknownLongTag = 1'000;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

std::string Tag(int number, int wire_type) {
  return Varint(static_cast<uint64_t>(number) << 3 |
                static_cast<uint64_t>(wire_type));
}

std::vector<std::string> MessageEncodings(const Descriptor& type) {
  std::vector<std::string> encodings = {""};
  for (int i = 0; i < type.field_count(); ++i) {
    for (const std::string& field : FieldEncodings(*type.field(i))) {
      encodings.push_back(field);
      for (int j = 0; j < type.field_count(); ++j) {
        if (i != j) encodings.push_back(field + VarintField(j + 1, 5));
      }
    }
  }
  return encodings;
}

std::string RandomUnknownField(Dice* dice) {
  const int number = dice->Chance(500) ? kUnknownField : kUnknownLongTag;
  switch (dice->Draw(0, 3)) {
    case 0:
      return VarintField(number, static_cast<uint64_t>(dice->Draw(0, 1 << 20)));
    case 1:
      return Tag(number, kFixed64) + std::string(8, 'f');
    case 2:
      return Tag(number, kFixed32) + std::string(4, 'f');
    default:
      return BytesField(number, "unknown");
  }
}

std::string RandomField(const FieldDescriptor& field, Dice* dice) {
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    return BytesField(field.number(),
                      RandomWireMessage(*field.message_type(), dice));
  }
  std::vector<std::string> encodings = FieldEncodings(field);
  // Else hardly a message has only strings that are UTF-8.
  if (field.type() == FieldDescriptor::TYPE_STRING && dice->Chance(900)) {
    encodings.pop_back();
  }
  return encodings[dice->Index(encodings.size())];
}

}  // namespace

std::string VarintField(int number, uint64_t value) {
  return Tag(number, kVarint) + Varint(value);
}

std::string BytesField(int number, const std::string& value) {
  return Tag(number, kLengthDelimited) + Varint(value.size()) + value;
}

std::vector<std::string> FieldEncodings(const FieldDescriptor& field) {
  const int number = field.number();
  std::vector<std::string> encodings;
  switch (field.type()) {
    case FieldDescriptor::TYPE_MESSAGE:
      for (const std::string& bytes : MessageEncodings(*field.message_type())) {
        encodings.push_back(BytesField(number, bytes));
      }
      return encodings;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
      for (const char* bytes : {"", "k", "orders", "other", "\xff"}) {
        encodings.push_back(BytesField(number, bytes));
      }
      return encodings;
    default:
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{7},
            (uint64_t{1} << 32) + 1, UINT64_MAX}) {
        encodings.push_back(VarintField(number, value));
      }
      return encodings;
  }
}

std::string RandomWireMessage(const Descriptor& type, Dice* dice) {
  std::vector<std::string> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    // Mostly once, so that most messages mean something.
    const int64_t times = dice->Chance(700) ? 1 : dice->Draw(0, 3);
    // Of a oneof only one, but now and then.
    if (type.field(i)->real_containing_oneof() != nullptr &&
        !dice->Chance(1'500 / type.field_count())) {
      continue;
    }
    for (int64_t j = 0; j < times; ++j) {
      fields.push_back(RandomField(*type.field(i), dice));
    }
  }
  if (dice->Chance(100)) fields.push_back(RandomUnknownField(dice));
  std::string bytes;
  while (!fields.empty()) {
    const size_t next = dice->Index(fields.size());
    bytes += fields[next];
    fields.erase(fields.begin() + static_cast<int64_t>(next));
  }
  return bytes;
}

}  // namespace timecache
