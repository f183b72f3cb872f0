// Protobuf messages put together from fields as they stand on the wire: in any
// order, repeated, unknown, with any value. What a serializer would not write.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_WIRE_MESSAGE_H_
#define TIMECACHED_TESTS_SUPPORT_NET_WIRE_MESSAGE_H_

#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "tests/support/engine/dice.h"

namespace timecache {

// Fields as they stand on the wire.
std::string VarintField(int number, uint64_t value);
std::string BytesField(int number, const std::string& value);

// Encodings of the field: the values at the ends of its type, and some that a
// reader may take for another. Of a message: its fields in several orders.
std::vector<std::string> FieldEncodings(
    const google::protobuf::FieldDescriptor& field);

// A message of this type with some of its fields, each up to three times, and
// unknown ones among them, in any order.
std::string RandomWireMessage(const google::protobuf::Descriptor& type,
                              Dice* dice);

}  // namespace timecache

#endif  // TIMECACHED_TESTS_SUPPORT_NET_WIRE_MESSAGE_H_
