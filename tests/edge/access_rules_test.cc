#include "server/edge/access_rules.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reason.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Hash(absl::string_view token) {
  const TokenHash hash = HashToken(token);
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(hash.data()), hash.size()));
}

std::shared_ptr<const AccessRules> Parse(absl::string_view yaml) {
  auto rules = AccessRules::Parse(yaml, "access.yaml");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *rules : nullptr;
}

std::string ErrorOf(absl::string_view yaml) {
  const auto rules = AccessRules::Parse(yaml, "access.yaml");
  EXPECT_EQ(rules.status().code(), absl::StatusCode::kInvalidArgument) << yaml;
  return std::string(rules.status().message());
}

// Who that is: a principal's name, or the reason why it is nobody.
std::string Find(const AccessRules& rules, const Credentials& credentials) {
  absl::Status error;
  const Caller* const caller = rules.Find(credentials, &error);
  if (caller != nullptr) return caller->name();
  EXPECT_EQ(error.code(), absl::StatusCode::kUnauthenticated);
  return std::string(ReasonNameOf(error));
}

std::string FindBearer(const AccessRules& rules, absl::string_view value) {
  Credentials credentials;
  credentials.authorizations = {value};
  return Find(rules, credentials);
}

std::string FindSans(const AccessRules& rules,
                     std::vector<absl::string_view> sans) {
  Credentials credentials;
  credentials.has_certificate = true;
  credentials.certificate_sans = std::move(sans);
  return Find(rules, credentials);
}

const Caller& CallerOf(const AccessRules& rules, absl::string_view token) {
  const std::string value = absl::StrCat("Bearer ", token);
  Credentials credentials;
  credentials.authorizations = {value};
  absl::Status error;
  const Caller* const caller = rules.Find(credentials, &error);
  EXPECT_NE(caller, nullptr) << error;
  return *caller;
}

std::string TwoPrincipals() {
  return absl::StrCat(
      "principals:\n"
      "  - name: shop/basket\n"
      "    certificate_sans: [\"spiffe://shop/basket\", basket.shop]\n"
      "    token_sha256: [",
      Hash("basket-1"), ", ", absl::AsciiStrToUpper(Hash("basket-2")),
      "]\n"
      "  - name: audit\n"
      "    certificate_sans: [audit@shop]\n"
      "    token_sha256: [",
      Hash("audit"),
      "]\n"
      "rules:\n"
      "  - principals: [shop/basket]\n"
      "    namespaces: [baskets, \"basket-*\"]\n"
      "    verbs: [read, write]\n"
      "  - principals: [shop/basket]\n"
      "    namespaces: [baskets]\n"
      "    verbs: [watch]\n"
      "  - principals: [\"*\"]\n"
      "    namespaces: [public]\n"
      "    verbs: [read]\n");
}

TEST(MatchesPatternTest, StarIsAnyCharacters) {
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{{"*", ""},
                                                        {"*", "a"},
                                                        {"*", "*"},
                                                        {"a*", "a"},
                                                        {"a*", "abc"},
                                                        {"*c", "abc"},
                                                        {"a*c", "abcbc"},
                                                        {"*b*", "abc"},
                                                        {"a*b*c", "aXbYbZc"},
                                                        {"**", "a"},
                                                        {"orders", "orders"}}) {
    EXPECT_TRUE(MatchesPattern(pattern, name)) << pattern << " " << name;
  }
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{{"", "a"},
                                                        {"a", ""},
                                                        {"a*", "b"},
                                                        {"a*", "*"},
                                                        {"*c", "cb"},
                                                        {"a*b", "acd"},
                                                        {"a*b*c", "acb"},
                                                        {"orders", "order"}}) {
    EXPECT_FALSE(MatchesPattern(pattern, name)) << pattern << " " << name;
  }
}

TEST(AccessRulesTest, TokensAreKnownByTheirHash) {
  const auto rules = Parse(TwoPrincipals());
  EXPECT_EQ(rules->num_principals(), 2u);
  EXPECT_EQ(rules->num_rules(), 3u);
  EXPECT_EQ(FindBearer(*rules, "Bearer basket-1"), "shop/basket");
  EXPECT_EQ(FindBearer(*rules, "bearer basket-2"), "shop/basket");
  EXPECT_EQ(FindBearer(*rules, "Bearer audit"), "audit");
  EXPECT_EQ(FindBearer(*rules, "Bearer basket-3"),
            ReasonName(Reason::kUnknownToken));
  // The hash itself opens nothing.
  EXPECT_EQ(FindBearer(*rules, "Bearer " + Hash("audit")),
            ReasonName(Reason::kUnknownToken));
}

TEST(AccessRulesTest, OtherAuthorizationsAreMalformed) {
  const auto rules = Parse(TwoPrincipals());
  for (const std::string& value :
       {std::string(), std::string("Bearer"), std::string("Bearer "),
        std::string("Basic YTpi"), std::string("audit"),
        std::string("Bearer two words"), std::string("Bearer =audit"),
        std::string("Bearer  audit"), std::string("Bearer aud\xc3\xa9"),
        "Bearer " + std::string(AccessRules::kMaxTokenBytes + 1, 'a')}) {
    EXPECT_EQ(FindBearer(*rules, value),
              ReasonName(Reason::kMalformedCredentials))
        << value.substr(0, 30);
  }
  EXPECT_EQ(
      FindBearer(*rules,
                 "Bearer " + std::string(AccessRules::kMaxTokenBytes, 'a')),
      ReasonName(Reason::kUnknownToken));
  Credentials twice;
  twice.authorizations = {"Bearer audit", "Bearer audit"};
  EXPECT_EQ(Find(*rules, twice), ReasonName(Reason::kMalformedCredentials));
}

TEST(AccessRulesTest, ErrorsDoNotRepeatTheToken) {
  const auto rules = Parse(TwoPrincipals());
  for (const absl::string_view value :
       {"Bearer hunter2", "Basic hunter2", "Bearer hunter2 hunter2"}) {
    Credentials credentials;
    credentials.authorizations = {value};
    absl::Status error;
    EXPECT_EQ(rules->Find(credentials, &error), nullptr);
    EXPECT_THAT(error.ToString(), Not(HasSubstr("hunter2")));
  }
}

TEST(AccessRulesTest, CertificatesAreKnownByAnyOfTheirNames) {
  const auto rules = Parse(TwoPrincipals());
  EXPECT_EQ(FindSans(*rules, {"basket.shop"}), "shop/basket");
  EXPECT_EQ(FindSans(*rules, {"localhost", "spiffe://shop/basket"}),
            "shop/basket");
  EXPECT_EQ(FindSans(*rules, {"audit@shop"}), "audit");
  EXPECT_EQ(FindSans(*rules, {"other", "basket.shop.evil"}),
            ReasonName(Reason::kUnknownCertificate));
  EXPECT_EQ(FindSans(*rules, {}), ReasonName(Reason::kUnknownCertificate));
  EXPECT_EQ(Find(*rules, Credentials()), ReasonName(Reason::kNoCredentials));
}

TEST(AccessRulesTest, TheTokenDecidesWhereThereIsACertificateToo) {
  const auto rules = Parse(TwoPrincipals());
  Credentials both;
  both.has_certificate = true;
  both.certificate_sans = {"basket.shop"};
  both.authorizations = {"Bearer audit"};
  EXPECT_EQ(Find(*rules, both), "audit");
  both.authorizations = {"Bearer wrong"};
  EXPECT_EQ(Find(*rules, both), ReasonName(Reason::kUnknownToken));
}

TEST(AccessRulesTest, VerbsOfAllRulesThatMatchAddUp) {
  const auto rules = Parse(TwoPrincipals());
  const Caller& basket = CallerOf(*rules, "basket-1");
  const Verbs read_write = {config::v1::VERB_READ, config::v1::VERB_WRITE};
  EXPECT_EQ(basket.VerbsIn("baskets"), read_write | config::v1::VERB_WATCH);
  EXPECT_EQ(basket.VerbsIn("basket-7"), read_write);
  EXPECT_EQ(basket.VerbsIn("basket"), Verbs());
  EXPECT_EQ(basket.VerbsIn("public"), Verbs(config::v1::VERB_READ));
  EXPECT_EQ(basket.VerbsIn(kWholeServer), Verbs());
  EXPECT_TRUE(basket.MayAnything());
  const Caller& audit = CallerOf(*rules, "audit");
  EXPECT_EQ(audit.VerbsIn("public"), Verbs(config::v1::VERB_READ));
  EXPECT_EQ(audit.VerbsIn("baskets"), Verbs());
}

TEST(AccessRulesTest, PermissionsAreThoseOfAllItsRulesByPattern) {
  const auto rules = Parse(TwoPrincipals());
  std::vector<std::string> all;
  for (const PatternVerbs& each : CallerOf(*rules, "basket-1").Permissions()) {
    all.push_back(absl::StrCat(each.pattern, ": ", each.verbs.ToString()));
  }
  EXPECT_THAT(all, ::testing::ElementsAre("basket-*: read, write",
                                          "baskets: read, write, watch",
                                          "public: read"));
  EXPECT_EQ(CallerOf(*rules, "audit").Permissions().size(), 1u);
}

TEST(AccessRulesTest, OnlyAStarAloneIsTheWholeServer) {
  const auto rules = Parse(absl::StrCat(
      "principals: [{name: all, token_sha256: [", Hash("all"),
      "]}, {name: most, token_sha256: [", Hash("most"),
      "]}]\n"
      "rules:\n"
      "  - {principals: [all], namespaces: [\"*\"], verbs: [admin]}\n"
      "  - {principals: [most], namespaces: [\"a*\", \"*a\"], verbs: "
      "[admin]}\n"));
  EXPECT_EQ(CallerOf(*rules, "all").VerbsIn(kWholeServer),
            Verbs(config::v1::VERB_ADMIN));
  EXPECT_EQ(CallerOf(*rules, "most").VerbsIn(kWholeServer), Verbs());
  // Longer than any name: costs nothing, and gives no more than "*".
  const std::string longest(1 << 20, 'a');
  EXPECT_EQ(CallerOf(*rules, "most").VerbsIn(longest), Verbs());
  EXPECT_EQ(CallerOf(*rules, "all").VerbsIn(longest),
            Verbs(config::v1::VERB_ADMIN));
}

TEST(AccessRulesTest, APrincipalWithoutARuleMayNothing) {
  const auto rules = Parse(absl::StrCat(
      "principals: [{name: new, token_sha256: [", Hash("new"), "]}]\n"));
  EXPECT_FALSE(CallerOf(*rules, "new").MayAnything());
  EXPECT_EQ(CallerOf(*rules, "new").VerbsIn("default"), Verbs());
}

TEST(AccessRulesTest, ErrorsNameLineFieldAndLimit) {
  const auto principal = [](absl::string_view rest) {
    return absl::StrCat("principals:\n  - ", rest, "\n");
  };
  const std::string known = "principals: [{name: a}]\nrules:\n  - ";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"access.yaml: principals:", "1 to 10000"}},
      {"rules: []", {"principals:"}},
      {"principles: []", {"access.yaml:1", "unknown field"}},
      {principal("certificate_sans: [a]"), {"principals[0].name", "1 to 253"}},
      {principal("name: \"a b\""), {":2: principals[0].name", "letters"}},
      {principal("name: \"*\""), {"principals[0].name"}},
      {principal("name: " + std::string(254, 'a')), {"principals[0].name"}},
      {principal("name: a\n  - name: a"), {":3: principals[1].name", "two"}},
      {principal("name: a\n    token_sha256: [abc]"),
       {":3: principals[0].token_sha256[0]", "64 hexadecimal"}},
      {principal("name: a\n    certificate_sans: [\"\"]"),
       {"principals[0].certificate_sans[0]", "1024"}},
      {known + "{namespaces: [n], verbs: [read]}",
       {":3: rules[0]", "no principals"}},
      {known + "{principals: [a], verbs: [read]}", {"no namespaces"}},
      {known + "{principals: [a], namespaces: [n]}", {"no verbs"}},
      {known + "{principals: [b], namespaces: [n], verbs: [read]}",
       {"rules[0].principals[0]", "\"b\""}},
      {known + "{principals: [a, a], namespaces: [n], verbs: [read]}",
       {"rules[0].principals[1]", "twice"}},
      {known + "{principals: [a, \"*\"], namespaces: [n], verbs: [read]}",
       {"rules[0].principals[1]", "all of them"}},
      {known + "{principals: [a], namespaces: [N], verbs: [read]}",
       {"rules[0].namespaces[0]", "[-a-z0-9.*]"}},
      {known + "{principals: [a], namespaces: [\"n_*\"], verbs: [read]}",
       {"rules[0].namespaces[0]"}},
      {known + "{principals: [a], namespaces: [\"" + std::string(63, 'a') +
           "*\"], verbs: [read]}",
       {"rules[0].namespaces[0]", "63"}},
      {known + "{principals: [a], namespaces: [n], verbs: [fly]}",
       {"rules[0].verbs[0]"}},
  };
  for (const auto& [yaml, parts] : cases) {
    const std::string error = ErrorOf(yaml);
    for (const std::string& part : parts) EXPECT_THAT(error, HasSubstr(part));
  }
}

TEST(AccessRulesTest, AnErrorIsOneLineWhateverTheFileHolds) {
  const std::string error = ErrorOf(
      "principals: [{name: a}]\n"
      "rules: [{principals: [\"b\\nc\"], namespaces: [a], verbs: [read]}]");
  EXPECT_THAT(error, HasSubstr("no principal \"b\\nc\""));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
}

TEST(AccessRulesTest, NobodyIsTwoPrincipals) {
  const std::string hash = Hash("shared");
  EXPECT_THAT(
      ErrorOf(absl::StrCat("principals: [{name: a, token_sha256: [", hash,
                           "]}, {name: b, token_sha256: [",
                           absl::AsciiStrToUpper(hash), "]}]")),
      AllOf(HasSubstr("principals[1].token_sha256[0]"),
            HasSubstr("this token is already assigned to principal \"a\""),
            Not(HasSubstr(hash))));
  EXPECT_THAT(ErrorOf("principals: [{name: a, certificate_sans: [x]}, "
                      "{name: b, certificate_sans: [y, x]}]"),
              HasSubstr("principals[1].certificate_sans[1]"));
}

TEST(AccessRulesTest, CountsHaveLimits) {
  const auto list = [](int count, auto element) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(element(i));
    return absl::StrCat("[", absl::StrJoin(all, ", "), "]");
  };
  const auto name = [](int i) { return absl::StrCat("n", i); };
  const auto hash = [](int i) { return Hash(absl::StrCat(i)); };
  const auto person = [](int i) { return absl::StrCat("{name: p", i, "}"); };
  const auto rule = [](int) {
    return "{principals: [p0], namespaces: [n], verbs: [read]}";
  };
  for (const int over : {0, 1}) {
    EXPECT_EQ(AccessRules::Parse(
                  absl::StrCat("principals: [{name: a, certificate_sans: ",
                               list(16 + over, name), "}]"),
                  "f")
                  .ok(),
              over == 0);
    EXPECT_EQ(
        AccessRules::Parse(absl::StrCat("principals: [{name: a, token_sha256: ",
                                        list(16 + over, hash), "}]"),
                           "f")
            .ok(),
        over == 0);
    EXPECT_EQ(
        AccessRules::Parse(
            absl::StrCat("principals: ",
                         list(AccessRules::kMaxPrincipals + over, person)),
            "f")
            .ok(),
        over == 0);
    EXPECT_EQ(AccessRules::Parse(
                  absl::StrCat("principals: [{name: p0}]\nrules: ",
                               list(AccessRules::kMaxRules + over, rule)),
                  "f")
                  .ok(),
              over == 0);
  }
}

TEST(TokenHashTest, IsSha256) {
  // FIPS 180-2.
  EXPECT_EQ(Hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(SameTokenHash(HashToken("abc"), *ParseTokenHash(Hash("abc"))));
  EXPECT_FALSE(SameTokenHash(HashToken("abc"), HashToken("abd")));
}

TEST(TokenHashTest, NeedsSixtyFourHexadecimalDigits) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(ParseTokenHash(digits).has_value());
  EXPECT_FALSE(ParseTokenHash("").has_value());
  EXPECT_FALSE(ParseTokenHash(digits.substr(1)).has_value());
  EXPECT_FALSE(ParseTokenHash(digits + "a").has_value());
  EXPECT_FALSE(ParseTokenHash(digits.substr(1) + "g").has_value());
}

}  // namespace
}  // namespace timecache::server
