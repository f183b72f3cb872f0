// An access file is refused in one line without a hash in it, or it allows
// exactly what its text says, by a plain reading of it: nothing less, nothing
// more, whatever the credentials and the namespace are.
//
// The bytes are the file, and behind a line "%" four lines: the namespace, two
// subject alternative names, the authorization.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/api/yaml_to_proto.h"
#include "server/base/error.h"
#include "server/edge/access_rules.h"
#include "server/edge/connection/certificate_names.h"
#include "server/edge/token_hash.h"
#include "tests/fuzz/fuzz.h"

namespace timecache::server {
namespace {

using fuzz::Require;

struct Question {
  std::string name;
  std::vector<std::string> sans;
  std::vector<std::string> authorizations;
};

// Which beginnings of the name the pattern's beginning matches, a character of
// the pattern at a time.
bool Matches(std::string_view pattern, std::string_view name) {
  std::vector<bool> matched(name.size() + 1, false);
  matched[0] = true;
  for (const char c : pattern) {
    std::vector<bool> next(name.size() + 1, false);
    for (size_t i = 0; i <= name.size(); ++i) {
      const bool before = i > 0 && (c == '*' ? next[i - 1] : matched[i - 1]);
      next[i] = c == '*' ? matched[i] || before : before && name[i - 1] == c;
    }
    matched = next;
  }
  return matched.back();
}

// The principal's name; empty: none.
std::string Who(const config::v1::AccessRules& rules,
                const Question& question) {
  if (!question.authorizations.empty()) {
    const std::string& header = question.authorizations[0];
    constexpr size_t kSchemeBytes = 7;
    if (!absl::StartsWithIgnoreCase(header, "bearer ")) return "";
    const TokenHash hash = HashToken(header.substr(kSchemeBytes));
    const std::string digits = absl::BytesToHexString(absl::string_view(
        reinterpret_cast<const char*>(hash.data()), hash.size()));
    for (const config::v1::Principal& principal : rules.principals()) {
      for (const std::string& token : principal.token_sha256()) {
        if (absl::AsciiStrToLower(token) == digits) return principal.name();
      }
    }
    return "";
  }
  for (const std::string& san : question.sans) {
    for (const config::v1::Principal& principal : rules.principals()) {
      for (const std::string& known : principal.certificate_sans()) {
        if (CanonicalName(known) == san) return principal.name();
      }
    }
  }
  return "";
}

Verbs What(const config::v1::AccessRules& rules, const std::string& who,
           const std::string& name) {
  Verbs verbs;
  for (const config::v1::AccessRule& rule : rules.rules()) {
    const bool named =
        std::any_of(rule.principals().begin(), rule.principals().end(),
                    [&](const auto& one) { return one == "*" || one == who; });
    const bool matches =
        std::any_of(rule.namespaces().begin(), rule.namespaces().end(),
                    [&](const auto& one) { return Matches(one, name); });
    if (!named || !matches) continue;
    for (const int verb : rule.verbs()) {
      verbs = verbs | static_cast<config::v1::Verb>(verb);
    }
  }
  return verbs;
}

Credentials ToCredentials(const Question& question) {
  Credentials credentials;
  credentials.has_certificate = !question.sans.empty();
  for (const std::string& san : question.sans) {
    credentials.certificate_sans.push_back(san);
  }
  for (const std::string& one : question.authorizations) {
    credentials.authorizations.push_back(one);
  }
  return credentials;
}

void CheckQuestion(const AccessRules& rules,
                   const config::v1::AccessRules& text,
                   const Question& question) {
  absl::Status error;
  const Caller* caller = rules.Find(ToCredentials(question), &error);
  const std::string who = Who(text, question);
  if (caller == nullptr) {
    Require(absl::IsUnauthenticated(error), error.ToString());
    Require(ReasonOf(error).has_value(), error.ToString());
    // What is no token is refused before it is looked up.
    Require(who.empty() || ReasonOf(error) == Reason::kMalformedCredentials,
            "nobody instead of " + who);
    return;
  }
  Require(caller->name() == who, caller->name() + " instead of " + who);
  for (const std::string& name :
       {question.name, std::string("orders-1"), std::string("*")}) {
    // A name that no namespace can have is like one of no characters.
    if (name.size() > AccessRules::kMaxPatternBytes) continue;
    Require(
        caller->VerbsIn(name) == What(text, who, name),
        absl::StrCat(who, " in ", name, ": ", caller->VerbsIn(name).ToString(),
                     " instead of ", What(text, who, name).ToString()));
  }
}

void CheckRefusal(const absl::Status& status, const std::string& yaml,
                  const config::v1::AccessRules& text) {
  const std::string message(status.message());
  Require(absl::IsInvalidArgument(status), message);
  Require(absl::StartsWith(message, "file:"), message);
  Require(!absl::StrContains(message, '\n'), message);
  for (const config::v1::Principal& principal : text.principals()) {
    for (const std::string& hash : principal.token_sha256()) {
      constexpr size_t kHashDigits = 64;
      // One that stands in a field's name as well may be told with that.
      if (hash.size() != kHashDigits || yaml.find(hash) != yaml.rfind(hash)) {
        continue;
      }
      Require(!absl::StrContains(message, hash), "a hash in an error");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> parts =
      absl::StrSplit(fuzz::Bytes(data, size), absl::MaxSplits("\n%\n", 1));
  config::v1::AccessRules text;
  const bool is_yaml = YamlToProto(parts[0], "file", &text).ok();
  const auto rules = AccessRules::Parse(parts[0], "file");
  if (!rules.ok()) {
    CheckRefusal(rules.status(), parts[0], text);
    return 0;
  }
  fuzz::Require(is_yaml, "rules of what is no YAML");
  std::vector<std::string> lines =
      absl::StrSplit(parts.size() > 1 ? parts[1] : "", '\n');
  lines.resize(4);
  CheckQuestion(**rules, text, {lines[0], {lines[1], lines[2]}, {}});
  CheckQuestion(**rules, text, {lines[0], {lines[1]}, {lines[3]}});
  CheckQuestion(**rules, text, {lines[0], {}, {"Bearer token-1"}});
  return 0;
}

}  // namespace timecache::server
