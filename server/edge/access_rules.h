// The rules of an access file, indexed for look-ups.

#ifndef TIMECACHED_SERVER_EDGE_ACCESS_RULES_H_
#define TIMECACHED_SERVER_EDGE_ACCESS_RULES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/api/access.h"
#include "server/edge/token_hash.h"

namespace timecache::server {

// Whether `pattern`, in which "*" stands for any characters, matches all of
// `name`. Thread-safe. Costs at most the product of their lengths.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

// The rules of one file at one moment. Immutable, so thread-safe. Memory and
// time to make it are linear in the file. Finding the caller costs one hash
// look-up; its permissions cost a look-up, and a match for each pattern with a
// "*", in each rule that names it.
class AccessRules {
 public:
  static constexpr int kMaxPrincipals = 10'000;
  static constexpr int kMaxRules = 10'000;
  static constexpr int kMaxSansPerPrincipal = 16;
  static constexpr int kMaxTokensPerPrincipal = 16;
  static constexpr size_t kMaxPrincipalNameBytes = 253;
  static constexpr size_t kMaxSanBytes = 1024;
  static constexpr size_t kMaxTokenBytes = 4096;
  // As long as a namespace's name may be.
  static constexpr size_t kMaxPatternBytes = 63;

  // Reads YAML (config/yaml_to_proto.h), an AccessRules of config.proto.
  // INVALID_ARGUMENT in one line that begins with the source's name, the line
  // and the field; never with a hash in it.
  static absl::StatusOr<std::shared_ptr<const AccessRules>> Parse(
      absl::string_view yaml, absl::string_view source_name);

  AccessRules(const AccessRules&) = delete;
  AccessRules& operator=(const AccessRules&) = delete;

  // As Access::Authenticate; null with `error` set to why. What is returned
  // lives as long as these rules. If there are both, the token decides.
  const Caller* Find(const Credentials& credentials, absl::Status* error) const;

  // The principal of this name; null if there is none.
  const Caller* FindPrincipal(absl::string_view name) const;

  size_t num_principals() const { return principals_.size(); }
  size_t num_rules() const { return rules_.size(); }

 private:
  friend class AccessRulesReader;

  struct Rule {
    // Names without a "*", and the others.
    absl::flat_hash_set<std::string> names;
    std::vector<std::string> patterns;
    Verbs verbs;

    bool Matches(absl::string_view name) const;
  };

  class Principal final : public Caller {
   public:
    Principal(std::string name, const std::vector<const Rule*>* everybodys)
        : name_(std::move(name)), everybodys_(*everybodys) {}
    const std::string& name() const override { return name_; }
    Verbs VerbsIn(absl::string_view name) const override;
    bool MayAnything() const override {
      return !rules_.empty() || !everybodys_.empty();
    }
    std::vector<PatternVerbs> Permissions() const override;
    void Add(const Rule* rule) { rules_.push_back(rule); }

   private:
    const std::string name_;
    // Of the principals "*".
    const std::vector<const Rule*>& everybodys_;
    std::vector<const Rule*> rules_;
  };

  // The time of a look-up reveals whether a hash exists, and as little else as
  // possible: an attacker who measures it learns at most how long a prefix the
  // SHA-256 of the sent token shares with that of a valid token. Hashes can
  // only be chosen by trying tokens, and a hash that is known in full does not
  // reveal its token. The comparison itself takes the same time for all hashes
  // that differ.
  struct HashOfTokenHash {
    size_t operator()(const TokenHash& hash) const;
  };
  struct EqualTokenHashes {
    bool operator()(const TokenHash& a, const TokenHash& b) const {
      return SameTokenHash(a, b);
    }
  };

  AccessRules() = default;

  const Caller* FindToken(const Credentials& credentials,
                          absl::Status* error) const;

  // They point at each other: neither moves.
  std::vector<std::unique_ptr<Principal>> principals_;
  std::vector<std::unique_ptr<Rule>> rules_;
  std::vector<const Rule*> everybodys_;
  absl::flat_hash_map<std::string, Principal*> by_name_;
  absl::flat_hash_map<std::string, const Principal*> by_san_;
  absl::flat_hash_map<TokenHash, const Principal*, HashOfTokenHash,
                      EqualTokenHashes>
      by_token_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_ACCESS_RULES_H_
