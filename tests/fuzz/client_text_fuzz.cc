// What timecachectl reads from users and files: lines to load, units,
// encodings, access logs. What is read comes back the same when it is written.

#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/dump/load_line.h"
#include "client/cli/ui/bytes.h"
#include "client/cli/ui/units.h"
#include "client/examples/log_line.h"
#include "server/base/utf8.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::cli {
namespace {

using fuzz::Require;

void CheckUnits(const std::string& text) {
  if (const auto count = ParseCount(text); count.ok()) {
    Require(ParseCount(absl::StrCat(*count)).value() == *count, text);
  }
  if (const auto time = ParseTime(text); time.ok()) {
    Require(!TimeText(*time).empty(), text);
    const auto again = ParseTime(ExactTimeText(*time));
    Require(again.ok(), text + " came out as " + ExactTimeText(*time));
  }
}

void CheckEncodings(const std::string& text) {
  for (const Encoding encoding :
       {Encoding::kText, Encoding::kHex, Encoding::kBase64}) {
    const auto decoded = Decode(text, encoding);
    if (encoding == Encoding::kText) Require(decoded.ok(), text);
    if (!decoded.ok() || encoding == Encoding::kText) continue;
    const auto again = Decode(Encode(*decoded, encoding), encoding);
    Require(again.ok() && *again == *decoded, text);
  }
  const std::string shown = Escape(text);
  Require(FindInvalidUtf8(shown) == absl::string_view::npos,
          "what is shown is UTF-8");
  for (const char c : shown) {
    Require(static_cast<unsigned char>(c) >= ' ' && c != 0x7f, shown);
  }
}

void CheckLines(const std::string& line) {
  (void)IsBlank(line, GuessFormat(line));
  (void)ParseJsonLine(line);
  for (const Encoding encoding :
       {Encoding::kText, Encoding::kHex, Encoding::kBase64}) {
    const Encodings encodings{encoding, encoding};
    const auto entry = ParseTsvLine(line, encodings);
    if (!entry.ok()) continue;
    Require(absl::StrContains(line, '\t'), line);
    const auto again =
        ParseTsvLine(absl::StrCat(Encode(entry->key, encoding), "\t",
                                  Encode(entry->value, encoding)),
                     encodings);
    // Text is escaped on its way out.
    if (encoding == Encoding::kText) continue;
    Require(
        again.ok() && again->key == entry->key && again->value == entry->value,
        line);
  }
}

void CheckLogLine(const std::string& line) {
  const auto parsed = sessionize::ParseLogLine(line);
  if (!parsed.ok()) return;
  Require(!parsed->visitor.empty() &&
              parsed->visitor.size() <= sessionize::kMaxVisitorBytes,
          line);
  for (const char c : parsed->visitor) Require(c > ' ' && c <= '~', line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::Bytes(data, size);
  CheckUnits(text);
  CheckEncodings(text);
  CheckLines(text);
  CheckLogLine(text);
  return 0;
}

}  // namespace timecache::cli
