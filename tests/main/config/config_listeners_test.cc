// Listeners, their TLS, and the address of health.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "server/main/config/flags.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

config::v1::ServerConfig ParsedListeners(absl::string_view yaml) {
  const auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : config::v1::ServerConfig();
}

std::string ListenerRefusal(absl::string_view yaml) {
  const auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_FALSE(config.ok()) << yaml;
  return std::string(config.status().message());
}

// A listener with these fields in its tls.
std::string Tls(const std::string& fields) {
  return "listeners: [{address: 0.0.0.0:1, tls: {" + fields + "}}]";
}

TEST(ConfigListenersTest, TlsHasItsDefaults) {
  const config::v1::TlsConfig tls =
      ParsedListeners(Tls("certificate_file: c, key_file: k"))
          .listeners(0)
          .tls();
  EXPECT_EQ(tls.client_ca_file(), "");
  EXPECT_EQ(tls.client_certificate(), config::v1::CLIENT_CERTIFICATE_NONE);
}

TEST(ConfigListenersTest, ClientsMustShowCertificatesWhereThereAreRoots) {
  const std::string files =
      "certificate_file: c, key_file: k, client_ca_file: r";
  EXPECT_EQ(ParsedListeners(Tls(files)).listeners(0).tls().client_certificate(),
            config::v1::CLIENT_CERTIFICATE_REQUIRED);
  EXPECT_EQ(ParsedListeners(Tls(files + ", client_certificate: optional"))
                .listeners(0)
                .tls()
                .client_certificate(),
            config::v1::CLIENT_CERTIFICATE_OPTIONAL);
}

TEST(ConfigListenersTest, TlsThatMakesNoSenseIsRefused) {
  EXPECT_THAT(
      ListenerRefusal(Tls("key_file: k")),
      StartsWith("t.yaml:1: listeners[0].tls: has no certificate_file"));
  EXPECT_THAT(ListenerRefusal(Tls("certificate_file: c")),
              StartsWith("t.yaml:1: listeners[0].tls: has no key_file"));
  EXPECT_THAT(ListenerRefusal(Tls("certificate_file: c, key_file: k, "
                                  "client_certificate: required")),
              HasSubstr("client_certificate: needs client_ca_file"));
  EXPECT_THAT(
      ListenerRefusal(Tls("certificate_file: c, key_file: k, "
                          "client_ca_file: r, client_certificate: none")),
      HasSubstr("is none, and client_ca_file is set"));
}

TEST(ConfigListenersTest, PlainTextThatOthersMayReachMustBeAllowed) {
  for (const char* address :
       {"0.0.0.0:1", "'[::]:1'", "10.0.0.1:1", "host:1"}) {
    const std::string listener =
        std::string("listeners: [{address: ") + address;
    EXPECT_THAT(ListenerRefusal(listener + "}]"),
                AllOf(StartsWith("t.yaml:1: listeners[0]: would serve plain "
                                 "text on "),
                      HasSubstr("set tls"), HasSubstr("127.0.0.1"),
                      HasSubstr("allow_plaintext: true")));
    EXPECT_TRUE(ParsedListeners(listener + ", allow_plaintext: true}]")
                    .listeners(0)
                    .allow_plaintext());
  }
}

TEST(ConfigListenersTest, HealthHasAnAddressOfItsOwn) {
  EXPECT_EQ(ParsedListeners("health_address: 0.0.0.0:7173").health_address(),
            "0.0.0.0:7173");
  EXPECT_THAT(
      ListenerRefusal("health_address: localhost"),
      StartsWith("t.yaml:1: health_address: \"localhost\" has no port"));
  EXPECT_THAT(ListenerRefusal("health_address: 127.0.0.1:7171"),
              HasSubstr("health_address: the same as a listener's"));
  ParsedListeners(
      "health_address: 127.0.0.1:0\nlisteners: [{address: 127.0.0.1:0}]");
}

TEST(ConfigListenersTest, FlagsSayHowToServeOnListen) {
  Flags flags;
  flags.listen = {"0.0.0.0:1"};
  EXPECT_THAT(std::string(ConfigFromFlags(flags).status().message()),
              AllOf(StartsWith("command line: listeners[0]: would serve plain"),
                    HasSubstr("--tls-cert"), HasSubstr("--allow-plaintext")));
  flags.allow_plaintext = true;
  EXPECT_TRUE(ConfigFromFlags(flags).ok());
  flags.allow_plaintext = false;
  flags.tls_certificate = "c";
  EXPECT_THAT(std::string(ConfigFromFlags(flags).status().message()),
              HasSubstr("has no key_file"));
  flags.tls_key = "k";
  flags.tls_client_ca = "r";
  const auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  const config::v1::TlsConfig& tls = config->listeners(0).tls();
  EXPECT_EQ(tls.certificate_file(), "c");
  EXPECT_EQ(tls.key_file(), "k");
  EXPECT_EQ(tls.client_ca_file(), "r");
  EXPECT_EQ(tls.client_certificate(), config::v1::CLIENT_CERTIFICATE_REQUIRED);
}

TEST(ConfigListenersTest, FlagsWithoutListenAreForTheDefaultListenerOnly) {
  Flags flags;
  flags.tls_certificate = "c";
  flags.tls_key = "k";
  const auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listeners(0).address(), "127.0.0.1:7171");
  EXPECT_EQ(config->listeners(0).tls().key_file(), "k");
  flags.config = "/dev/null";
  EXPECT_THAT(std::string(ConfigFromFlags(flags).status().message()),
              HasSubstr("are for addresses of --listen: add one"));
}

}  // namespace
}  // namespace timecache::server
