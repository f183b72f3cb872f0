// timecached and timecachectl with TLS, as users run them.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/net/certificates.h"
#include "tests/support/process.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsProcessTest : public ::testing::Test {
 protected:
  TlsProcessTest() {
    directory_.Write("server", authority_.Issue());
    directory_.Write("client",
                     authority_.Issue(CertificateOptions::Client("client")));
    directory_.Write("ca.crt", authority_.certificate());
    directory_.Write("token", "token-of-a-client\n");
  }

  std::vector<std::string> ServerArguments() const {
    return {TIMECACHED,
            "--log-format=json",
            "--listen=127.0.0.1:0",
            "--tls-cert=" + directory_.Path("server.crt"),
            "--tls-key=" + directory_.Path("server.key"),
            "--tls-client-ca=" + directory_.Path("ca.crt")};
  }

  // Reads the server's log up to this event.
  static json Await(ChildProcess& server, const std::string& event) {
    for (;;) {
      const json line = json::parse(server.ReadErrorLine(), nullptr, false);
      if (!line.is_object() || line["event"] == event) return line;
    }
  }

  Exit Ctl(const std::string& address,
           std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address=" + address,
                      "--ca=" + directory_.Path("ca.crt"),
                      "--cert=" + directory_.Path("client.crt"),
                      "--key=" + directory_.Path("client.key"),
                      "--token-file=" + directory_.Path("token")});
    return RunToEnd(arguments);
  }

  const TemporaryDirectory directory_;
  const CertificateAuthority authority_;
};

TEST_F(TlsProcessTest, ClientWithCertificateAndTokenWorksEndToEnd) {
  ChildProcess server(ServerArguments());
  const std::string address = Await(server, "server_started")["address"];
  const Exit put = Ctl(address, {"put", "a", "one"});
  EXPECT_EQ(put.code, 0) << put.err;
  EXPECT_EQ(Ctl(address, {"get", "a"}).out, "one\n");
  EXPECT_EQ(Ctl(address, {"bench", "--operations", "100"}).code, 0);

  // The same from the environment.
  const Exit got =
      ChildProcess({TIMECACHECTL, "get", "a"}, "",
                   {{"TIMECACHED_ADDRESS", address},
                    {"TIMECACHED_CA", directory_.Path("ca.crt")},
                    {"TIMECACHED_CERT", directory_.Path("client.crt")},
                    {"TIMECACHED_KEY", directory_.Path("client.key")}})
          .Wait();
  EXPECT_EQ(got.out, "one\n") << got.err;
}

TEST_F(TlsProcessTest, ClientIsToldWhyThereIsNoConnection) {
  ChildProcess server(ServerArguments());
  const std::string address = Await(server, "server_started")["address"];
  const std::string at = "--address=" + address;
  const std::string ca = "--ca=" + directory_.Path("ca.crt");
  const CertificateAuthority other("other");
  directory_.Write("other.crt", other.certificate());

  // A client that ends in the midst of gRPC's handshake leaves some of
  // OpenSSL's memory behind: no leak that a sanitizer should end it for.
  const auto why = [](const std::vector<std::string>& arguments) {
    const Exit exit =
        ChildProcess(arguments, "", {{"ASAN_OPTIONS", "detect_leaks=0"}})
            .Wait();
    EXPECT_EQ(exit.code, 2);
    return exit.err;
  };
  EXPECT_THAT(why({TIMECACHECTL, at, "get", "a"}), HasSubstr("TLS"));
  EXPECT_THAT(why({TIMECACHECTL, at, ca, "get", "a"}),
              HasSubstr("certificate"));
  EXPECT_THAT(why({TIMECACHECTL, at, "--ca=" + directory_.Path("other.crt"),
                   "get", "a"}),
              HasSubstr("is not signed by"));
  EXPECT_THAT(
      why({TIMECACHECTL, at, ca, "--server-name=cache.example", "get", "a"}),
      HasSubstr("is not for the name"));
  EXPECT_THAT(
      why({TIMECACHECTL, at, "--ca=" + directory_.Path("absent"), "get", "a"}),
      AllOf(HasSubstr("CA file"), HasSubstr("cannot be read")));
  EXPECT_THAT(why({TIMECACHECTL, at, ca,
                   "--cert=" + directory_.Path("client.crt"), "get", "a"}),
              HasSubstr("name both files"));
  EXPECT_THAT(why({TIMECACHECTL, "--address=192.0.2.1:1",
                   "--token-file=" + directory_.Path("token"), "get", "a"}),
              HasSubstr("in plain text"));
}

TEST_F(TlsProcessTest, HangupLooksAtTheFilesAtOnce) {
  ChildProcess server(ServerArguments());
  Await(server, "server_started");
  CertificateOptions next;
  next.common_name = "next";
  directory_.Write("server", authority_.Issue(next));
  server.Signal(SIGHUP);
  // Within the default interval of 10 s it may have been seen already: once for
  // the certificate alone, which does not fit the key.
  EXPECT_EQ(Await(server, "tls_reloaded")["subject"], "CN=next");
}

}  // namespace
}  // namespace timecache::test
