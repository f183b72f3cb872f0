#include "server/edge/access_rules.h"

#include <cstring>
#include <initializer_list>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

absl::Status Unauthenticated(Reason reason, absl::string_view message) {
  return ErrorWithReason(absl::StatusCode::kUnauthenticated, reason, message);
}

// As in RFC 6750: letters, digits, -._~+/ and = at the end.
bool IsToken(absl::string_view text) {
  while (absl::ConsumeSuffix(&text, "=")) {
  }
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) &&
        absl::string_view("-._~+/").find(c) == absl::string_view::npos) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  size_t p = 0;
  size_t n = 0;
  // Where to go on if what follows the last "*" does not fit: with one more
  // character for the "*".
  size_t star = absl::string_view::npos;
  size_t retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool AccessRules::Rule::Matches(absl::string_view name) const {
  if (names.contains(name)) return true;
  for (const std::string& pattern : patterns) {
    if (MatchesPattern(pattern, name)) return true;
  }
  return false;
}

Verbs AccessRules::Principal::VerbsIn(absl::string_view name) const {
  // A longer string is not a valid name: only "*" matches it, as it does "".
  if (name.size() > kMaxPatternBytes) name = {};
  Verbs verbs;
  for (const auto* rules : {&rules_, &everybodys_}) {
    for (const Rule* rule : *rules) {
      if (!verbs.Contains(rule->verbs) && rule->Matches(name)) {
        verbs = verbs | rule->verbs;
      }
    }
  }
  return verbs;
}

std::vector<PatternVerbs> AccessRules::Principal::Permissions() const {
  std::map<std::string, Verbs> by_pattern;
  for (const auto* rules : {&rules_, &everybodys_}) {
    for (const Rule* rule : *rules) {
      const auto add = [&](const std::string& pattern) {
        Verbs& verbs = by_pattern[pattern];
        verbs = verbs | rule->verbs;
      };
      for (const std::string& name : rule->names) add(name);
      for (const std::string& pattern : rule->patterns) add(pattern);
    }
  }
  std::vector<PatternVerbs> permissions;
  permissions.reserve(by_pattern.size());
  for (const auto& [pattern, verbs] : by_pattern) {
    permissions.push_back({pattern, verbs});
  }
  return permissions;
}

size_t AccessRules::HashOfTokenHash::operator()(const TokenHash& hash) const {
  // As random as a hash can be.
  size_t first;
  std::memcpy(&first, hash.data(), sizeof(first));
  return first;
}

const Caller* AccessRules::Find(const Credentials& credentials,
                                absl::Status* error) const {
  if (!credentials.authorizations.empty()) {
    return FindToken(credentials, error);
  }
  for (const absl::string_view san : credentials.certificate_sans) {
    const auto it = by_san_.find(san);
    if (it != by_san_.end()) return it->second;
  }
  *error =
      credentials.has_certificate
          ? Unauthenticated(Reason::kUnknownCertificate,
                            "no principal has a subject alternative name of "
                            "this certificate: add one to its certificate_sans "
                            "in the access file")
          : Unauthenticated(Reason::kNoCredentials,
                            "no credentials: send metadata \"authorization: "
                            "Bearer TOKEN\", or use a client certificate");
  return nullptr;
}

const Caller* AccessRules::FindPrincipal(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const Caller* AccessRules::FindToken(const Credentials& credentials,
                                     absl::Status* error) const {
  absl::string_view token = credentials.authorizations.front();
  const bool bearer = absl::StartsWithIgnoreCase(token, kScheme);
  if (bearer) token.remove_prefix(kScheme.size());
  absl::string_view problem;
  if (credentials.authorizations.size() > 1) {
    problem = "there is more than one authorization: send one";
  } else if (!bearer) {
    problem = "the authorization must be \"Bearer TOKEN\"";
  } else if (token.size() > kMaxTokenBytes) {
    problem = "the token must be at most 4096 bytes";
  } else if (!IsToken(token)) {
    problem =
        "the token must be letters, digits and -._~+/, with = at its end only";
  }
  if (!problem.empty()) {
    *error = Unauthenticated(Reason::kMalformedCredentials, problem);
    return nullptr;
  }
  const auto it = by_token_.find(HashToken(token));
  if (it != by_token_.end()) return it->second;
  *error = Unauthenticated(Reason::kUnknownToken,
                           "no principal has this token: add its SHA-256 to "
                           "token_sha256 in the access file (timecachectl "
                           "token --hash prints it)");
  return nullptr;
}

}  // namespace timecache::server
