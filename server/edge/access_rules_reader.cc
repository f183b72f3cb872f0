// From the access file's text to AccessRules.

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/api/yaml_to_proto.h"
#include "server/edge/access_rules.h"
#include "server/edge/connection/certificate_names.h"
#include "server/engine/store/namespace_options.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

bool IsPrincipalName(absl::string_view name) {
  if (name.empty() || name.size() > AccessRules::kMaxPrincipalNameBytes) {
    return false;
  }
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) &&
        absl::string_view("-._:/@").find(c) == absl::string_view::npos) {
      return false;
    }
  }
  return true;
}

// Whether a pattern matches any valid name of a namespace.
bool IsPattern(absl::string_view pattern) {
  if (pattern.empty() || pattern.size() > AccessRules::kMaxPatternBytes) {
    return false;
  }
  for (const char c : pattern) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) &&
        absl::string_view("-.*").find(c) == absl::string_view::npos) {
      return false;
    }
  }
  return true;
}

std::string Element(absl::string_view field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

}  // namespace

// Fills the rules of one file. Each step reports the first invalid field.
class AccessRulesReader {
 public:
  explicit AccessRulesReader(absl::string_view source_name)
      : source_name_(source_name), rules_(new AccessRules()) {}

  absl::Status Read(absl::string_view yaml) {
    config::v1::AccessRules from;
    absl::Status status = YamlToProto(yaml, source_name_, &from, &lines_);
    if (status.ok()) status = AddPrincipals(from);
    if (status.ok()) status = AddRules(from);
    return status;
  }

  std::shared_ptr<const AccessRules> Take() { return std::move(rules_); }

 private:
  absl::Status Error(const std::string& path, absl::string_view what) const {
    const auto line = lines_.find(path);
    return absl::InvalidArgumentError(absl::StrCat(
        source_name_,
        line == lines_.end() ? "" : absl::StrCat(":", line->second), ": ", path,
        ": ", what));
  }

  // Between 1 and `max` of them.
  absl::Status CheckCount(const std::string& path, int count, int max,
                          absl::string_view what) const {
    if (count > 0 && count <= max) return absl::OkStatus();
    return Error(
        path, absl::StrCat("must be 1 to ", max, " ", what, ", not ", count));
  }

  absl::Status AddPrincipals(const config::v1::AccessRules& from) {
    // An empty file is being written, or a mistake: to deny all callers, stop
    // the server.
    absl::Status status = CheckCount("principals", from.principals_size(),
                                     AccessRules::kMaxPrincipals, "principals");
    for (int i = 0; status.ok() && i < from.principals_size(); ++i) {
      status = AddPrincipal(Element("principals", i), from.principals(i));
    }
    return status;
  }

  absl::Status AddPrincipal(const std::string& path,
                            const config::v1::Principal& from) {
    if (!IsPrincipalName(from.name())) {
      return Error(
          path + ".name",
          absl::StrCat("must be 1 to ", AccessRules::kMaxPrincipalNameBytes,
                       " of letters, digits and -._:/@"));
    }
    auto owned = std::make_unique<AccessRules::Principal>(from.name(),
                                                          &rules_->everybodys_);
    AccessRules::Principal* const principal = owned.get();
    if (!rules_->by_name_.emplace(from.name(), principal).second) {
      return Error(path + ".name", absl::StrCat("there are two principals \"",
                                                from.name(), "\""));
    }
    rules_->principals_.push_back(std::move(owned));
    absl::Status status = AddSans(path + ".certificate_sans", from, principal);
    if (status.ok()) {
      status = AddTokens(path + ".token_sha256", from, principal);
    }
    return status;
  }

  absl::Status AddSans(const std::string& path,
                       const config::v1::Principal& from,
                       const AccessRules::Principal* principal) {
    if (from.certificate_sans_size() > AccessRules::kMaxSansPerPrincipal) {
      return Error(
          path,
          absl::StrCat("must be at most ", AccessRules::kMaxSansPerPrincipal,
                       " names, not ", from.certificate_sans_size()));
    }
    for (int i = 0; i < from.certificate_sans_size(); ++i) {
      const std::string& san = from.certificate_sans(i);
      if (san.empty() || san.size() > AccessRules::kMaxSanBytes) {
        return Error(
            Element(path, i),
            absl::StrCat("must be 1 to ", AccessRules::kMaxSanBytes, " bytes"));
      }
      const auto [other, is_new] =
          rules_->by_san_.emplace(CanonicalName(san), principal);
      if (!is_new) {
        return Error(
            Element(path, i),
            absl::StrCat("this SAN is already assigned to principal \"",
                         other->second->name(), "\""));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddTokens(const std::string& path,
                         const config::v1::Principal& from,
                         const AccessRules::Principal* principal) {
    if (from.token_sha256_size() > AccessRules::kMaxTokensPerPrincipal) {
      return Error(
          path,
          absl::StrCat("must be at most ", AccessRules::kMaxTokensPerPrincipal,
                       " hashes, not ", from.token_sha256_size()));
    }
    for (int i = 0; i < from.token_sha256_size(); ++i) {
      const auto hash = ParseTokenHash(from.token_sha256(i));
      if (!hash.has_value()) {
        return Error(Element(path, i),
                     "must be 64 hexadecimal digits, the SHA-256 of a token: "
                     "timecachectl token makes one");
      }
      const auto [other, is_new] = rules_->by_token_.emplace(*hash, principal);
      if (!is_new) {
        return Error(
            Element(path, i),
            absl::StrCat("this token is already assigned to principal \"",
                         other->second->name(), "\""));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddRules(const config::v1::AccessRules& from) {
    if (from.rules_size() > AccessRules::kMaxRules) {
      return Error("rules",
                   absl::StrCat("must be at most ", AccessRules::kMaxRules,
                                ", not ", from.rules_size()));
    }
    absl::Status status;
    for (int i = 0; status.ok() && i < from.rules_size(); ++i) {
      status = AddRule(Element("rules", i), from.rules(i));
    }
    return status;
  }

  absl::Status AddRule(const std::string& path,
                       const config::v1::AccessRule& from) {
    auto rule = std::make_unique<AccessRules::Rule>();
    for (const int verb : from.verbs()) {
      rule->verbs = rule->verbs | static_cast<config::v1::Verb>(verb);
    }
    if (rule->verbs.empty()) {
      return Error(path,
                   "has no verbs: add verbs: [read, write, watch, settle, "
                   "admin], or some of them");
    }
    absl::Status status = AddNamespaces(path, from, rule.get());
    if (status.ok()) status = AddToPrincipals(path, from, rule.get());
    rules_->rules_.push_back(std::move(rule));
    return status;
  }

  absl::Status AddNamespaces(const std::string& path,
                             const config::v1::AccessRule& from,
                             AccessRules::Rule* rule) {
    if (from.namespaces().empty()) {
      return Error(path, "has no namespaces: add namespaces: [NAME], or \"*\"");
    }
    for (int i = 0; i < from.namespaces_size(); ++i) {
      const std::string& pattern = from.namespaces(i);
      const bool is_name = pattern.find('*') == std::string::npos;
      if (is_name ? !ValidateNamespaceName(pattern).ok()
                  : !IsPattern(pattern)) {
        return Error(
            Element(absl::StrCat(path, ".namespaces"), i),
            absl::StrCat("must be a namespace's name, or one with \"*\" for "
                         "any characters, of at most ",
                         AccessRules::kMaxPatternBytes,
                         " characters [-a-z0-9.*]"));
      }
      if (is_name) {
        rule->names.insert(pattern);
      } else {
        rule->patterns.push_back(pattern);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddToPrincipals(const std::string& path,
                               const config::v1::AccessRule& from,
                               const AccessRules::Rule* rule) {
    if (from.principals().empty()) {
      return Error(path, "has no principals: add principals: [NAME], or \"*\"");
    }
    absl::flat_hash_set<absl::string_view> seen;
    for (int i = 0; i < from.principals_size(); ++i) {
      const std::string& name = from.principals(i);
      const std::string element = Element(absl::StrCat(path, ".principals"), i);
      if (!seen.insert(name).second) {
        return Error(element, "is listed twice");
      }
      if (name == "*") {
        if (from.principals_size() > 1) {
          return Error(element, "\"*\" is all of them: name no others");
        }
        rules_->everybodys_.push_back(rule);
        continue;
      }
      const auto principal = rules_->by_name_.find(name);
      if (principal == rules_->by_name_.end()) {
        return Error(
            element,
            absl::StrCat("there is no principal \"",
                         absl::CHexEscape(absl::string_view(name).substr(
                             0, AccessRules::kMaxPrincipalNameBytes)),
                         "\": add it to principals, or remove it here"));
      }
      principal->second->Add(rule);
    }
    return absl::OkStatus();
  }

  const absl::string_view source_name_;
  FieldLines lines_;
  std::shared_ptr<AccessRules> rules_;
};

absl::StatusOr<std::shared_ptr<const AccessRules>> AccessRules::Parse(
    absl::string_view yaml, absl::string_view source_name) {
  AccessRulesReader reader(source_name);
  absl::Status status = reader.Read(yaml);
  if (!status.ok()) return status;
  return reader.Take();
}

}  // namespace timecache::server
