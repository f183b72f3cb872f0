#ifndef TIMECACHED_SERVER_API_YAML_TO_PROTO_H_
#define TIMECACHED_SERVER_API_YAML_TO_PROTO_H_

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace timecache::server {

// The largest text that YamlToProto reads, and the deepest nesting in it.
inline constexpr size_t kMaxYamlBytes = 4 << 20;
inline constexpr int kMaxYamlDepth = 32;

// Where each field was set: full name ("namespaces[0].options.ttl") to line,
// from 1.
using FieldLines = absl::flat_hash_map<std::string, int>;

// Sets fields of `message` from the YAML text, by the message's own descriptor:
// a mapping is a message, a sequence a repeated field, a key the field's name
// as in the .proto file. Scalars are written like this:
//
//   string     text
//   bool       true, false
//   uint32, uint64
//              decimal; in a field with "bytes" in its name also a size, as in
//              server/base/units.h: 512B, 64KiB, 1.5GiB
//   enums      as in enum_names.h: evict_oldest
//   Duration   as in server/base/units.h: 500ms, 30s, 5m, 24h, 7d.
//
// A map of strings is a mapping, too: its entry "k" is "field[k]" in errors.
// A message or a sequence without a value (`limits:` and nothing more) is
// empty; an empty text changes nothing. Other types of fields, and lists of
// numbers, are not supported: no configuration has them.
//
// Anything else is INVALID_ARGUMENT with the position and the remedy:
//
//   timecached.yaml:7: namespaces[0].options.tll: unknown field; did you mean
//   "ttl"?
//
// Refused are unknown and repeated keys, values of a wrong type or out of the
// type's range, anchors, aliases and tags (a file must not grow when it is
// read), a second document, a text over kMaxYamlBytes or that is not UTF-8. The
// message is then left half filled.
//
// `source_name` stands before the line in errors. `lines`, unless null, gets
// the line of every field that was set. Thread-safe; linear in the text.
absl::Status YamlToProto(absl::string_view yaml, absl::string_view source_name,
                         google::protobuf::Message* message,
                         FieldLines* lines = nullptr);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_YAML_TO_PROTO_H_
