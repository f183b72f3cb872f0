// What the commands print: JSON of the client's structs, lines on standard
// output.

#ifndef TIMECACHED_CLIENT_CLI_UI_OUTPUT_H_
#define TIMECACHED_CLIENT_CLI_UI_OUTPUT_H_

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/ui/bytes.h"
#include "client/cpp/src/admin/fields.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"
#include "timecache/dead_letter.h"
#include "timecache/group_types.h"
#include "timecache/namespace_types.h"
#include "timecache/types.h"
#include "timecache/v1/namespaces.pb.h"
#include "timecache/v1/server.pb.h"
#include "timecache/v1/watch.pb.h"
#include "timecache/watch_types.h"

namespace timecache::cli {

using Json = nlohmann::ordered_json;

// Sets "NAME", or, where the bytes are not UTF-8 or the encoding says so,
// "NAME_base64" or "NAME_hex": never ambiguous.
void SetBytes(Json& object, const std::string& name, std::string_view bytes,
              Encoding encoding);

// Sets "parts", [{"name":..,"value":..}], and "expected_parts", or
// "expected_names", [{"name":..}].
void SetParts(Json& object, const GatheredParts& parts,
              const Encodings& encodings);
// "NAME=VALUE" of each, with `separator` between them.
std::string PartsText(const GatheredParts& parts, Encoding encoding,
                      std::string_view separator);
// The value, or such parts in a row.
template <typename EntryOrEvent>
std::string ValueText(const EntryOrEvent& entry, Encoding encoding) {
  return entry.parts ? PartsText(*entry.parts, encoding, " ")
                     : Encode(entry.value, encoding);
}

// Names and values: a line each, the names in a column.
using Fields = std::vector<std::pair<std::string, std::string>>;
std::string Columns(const Fields& fields);

// A table's lines, the first its head. Columns are as wide as their widest
// cell; the first is left-aligned, the others, numbers, right. A table of more
// than `rows` lines ends with how many it leaves out; a wider one than `columns`
// leaves out whole columns at the right, and before that cuts the names in the
// first, as long as the first `kept` columns need it.
using Row = std::vector<std::string>;
std::string Table(std::vector<Row> table, int rows = INT_MAX,
                  size_t columns = SIZE_MAX, size_t kept = 1);

// {"key":..,"value":..,"version":..,"put_time":..,"deadline":..}; of a key that
// collects parts these in place of the value.
Json ToJson(const Entry& entry, const Encodings& encodings,
            bool keys_only = false);

// {"type":"expired","namespace":..,"cause":..,"key":..,...,"late_ms":..}, in a
// consumer group with "event_id", "attempt" and "returns"; for an entry that is going to
// die {"type":"expiring",...,"left_ms":..}.
Json ToJson(const ExpiredEvent& event, const Encodings& encodings,
            bool keys_only);

// {"type":"change","namespace":..,"kind":..,"key":..,...}
Json ToJson(const ChangeEvent& change, const Encodings& encodings,
            bool keys_only);

// Options, bucket width, and statistics and warnings if it has them; durations
// as numbers of milliseconds.
Json ToJson(const Namespace& ns);

// The same of a consumer group, and of the parts of a server.
Json ToJson(const Group& group);
Json ToJson(const GroupMember& member);
Json ToJson(const HotKeys& hot, const Encodings& encodings);
Json ToJson(const JournalStatus& journal);
Json ToJson(const LimitUse& use);

// The fields of such an object for the eye, a line each, durations and bytes
// with units; those of an object in it without its name. Arrays are left out.
std::string Describe(const Json& object);

inline auto EnumOf(LimitPolicy) { return v1::LimitPolicy_descriptor(); }
inline auto EnumOf(Durability) { return v1::Durability_descriptor(); }
inline auto EnumOf(RestartPolicy) { return v1::RestartPolicy_descriptor(); }
inline auto EnumOf(CheckpointState) { return v1::CheckpointState_descriptor(); }
inline auto EnumOf(ExpiryCause) { return v1::ExpiryCause_descriptor(); }
inline auto EnumOf(ChangeKind) { return v1::ChangeKind_descriptor(); }
inline auto EnumOf(DeadLetterReason) {
  return v1::DeadLetterReason_descriptor();
}
std::string NameInEnum(const google::protobuf::EnumDescriptor& type,
                       int number);

// An enum's value as the API writes it, in lower case: "evict-oldest", "sync",
// "idle"; "unknown" if the API has none of this number.
template <typename Enum>
std::string NameOf(Enum value) {
  return NameInEnum(*EnumOf(value),
                    static_cast<int>(value) + kEnumOffset<Enum>);
}
// All of them.
template <typename Enum>
std::vector<std::string> NamesOf() {
  std::vector<std::string> names;
  for (int i = 1; i < EnumOf(Enum())->value_count(); ++i) {
    names.push_back(NameInEnum(*EnumOf(Enum()), i));
  }
  return names;
}

// Writes to standard output, buffered. False once its reader has closed it, or
// it cannot be written (a full disk): WriteError returns the error.
bool Write(std::string_view bytes);
bool WriteLine(std::string_view line);
bool WriteJson(const Json& object);
bool Flush();
// The errno of the first write that failed; 0: none did.
int WriteError();

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_OUTPUT_H_
