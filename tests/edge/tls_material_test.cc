#include "server/edge/tls_material.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/read_file.h"
#include "tests/support/net/certificates.h"

namespace timecache::server {
namespace {

using test::Certificate;
using test::CertificateAuthority;
using test::CertificateOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TlsMaterialTest : public ::testing::Test {
 protected:
  TlsMaterialTest() {
    directory_.Write("server", own_);
    directory_.Write("ca.crt", authority_.certificate());
    config_.set_certificate_file(directory_.Path("server.crt"));
    config_.set_key_file(directory_.Path("server.key"));
    config_.set_client_ca_file(directory_.Path("ca.crt"));
  }

  absl::StatusOr<TlsMaterial> Check() const {
    FileWatch::Contents contents;
    for (const std::string& path : TlsFiles(config_)) {
      contents.push_back(ReadFile(path, FileWatch::kMaxFileBytes));
    }
    return CheckTlsMaterial(config_, contents);
  }
  std::string Refusal() const {
    const auto material = Check();
    EXPECT_FALSE(material.ok());
    const std::string message(material.status().message());
    // No error tells a key.
    EXPECT_EQ(message.find(own_.key.substr(40, 20)), std::string::npos);
    return message;
  }

  const test::TemporaryDirectory directory_;
  const CertificateAuthority authority_;
  const Certificate own_ = authority_.Issue();
  config::v1::TlsConfig config_;
};

TEST_F(TlsMaterialTest, TellsWhatMayBeTold) {
  const auto material = Check();
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_EQ(material->certificate_chain, own_.certificate);
  EXPECT_EQ(material->private_key, own_.key);
  EXPECT_EQ(material->client_roots, authority_.certificate());
  EXPECT_EQ(material->subject, "CN=timecached");
  EXPECT_EQ(material->sans, "DNS:localhost, IP Address:127.0.0.1");
  const absl::Time now = absl::Now();
  EXPECT_LT(material->not_before, now);
  EXPECT_GT(material->not_after, now + absl::Hours(24 * 364));
  EXPECT_LT(material->not_after, now + absl::Hours(24 * 366));
}

TEST_F(TlsMaterialTest, RootsAreReadOnlyWhereThereAre) {
  config_.clear_client_ca_file();
  EXPECT_THAT(TlsFiles(config_), ElementsAre(directory_.Path("server.crt"),
                                             directory_.Path("server.key")));
  const auto material = Check();
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_EQ(material->client_roots, "");
}

TEST_F(TlsMaterialTest, ChainEndsWithItsFirstCertificateToEnd) {
  CertificateOptions short_lived;
  short_lived.valid_after = absl::Hours(2);
  directory_.Write("server.crt", own_.certificate +
                                     authority_.Issue(short_lived).certificate);
  const auto material = Check();
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_LT(material->not_after, absl::Now() + absl::Hours(3));
}

TEST_F(TlsMaterialTest, ExpiredCertificateIsTheCallersBusiness) {
  directory_.Write("server", authority_.Issue(CertificateOptions().Expired()));
  const auto material = Check();
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_LT(material->not_after, absl::Now());
}

TEST_F(TlsMaterialTest, MissingFileIsNamedWithItsField) {
  config_.set_key_file(directory_.Path("absent.key"));
  EXPECT_TRUE(absl::IsNotFound(Check().status()));
  EXPECT_THAT(Refusal(), StartsWith(absl::StrCat(
                             "tls.key_file: ", directory_.Path("absent.key"),
                             ": cannot be read")));
}

TEST_F(TlsMaterialTest, WhatIsNotPemIsRefused) {
  directory_.Write("server.crt", "hello");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tls.certificate_file: "),
                               HasSubstr("has no certificate in PEM")));
  directory_.Write("server", own_);
  directory_.Write("server.key", own_.certificate);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tls.key_file: "),
                               HasSubstr("has no private key in PEM")));
  directory_.Write("server", own_);
  directory_.Write("ca.crt", "");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("tls.client_ca_file: "),
                               HasSubstr("has no certificate in PEM")));
}

TEST_F(TlsMaterialTest, HalfAFileIsRefusedWhereverItEnds) {
  // The last bytes are the line's end.
  for (size_t size = 1; size < own_.certificate.size() - 1; size += 7) {
    directory_.Write("server.crt", own_.certificate.substr(0, size));
    EXPECT_FALSE(Check().ok()) << size;
  }
  directory_.Write("server", own_);
  for (size_t size = 1; size < own_.key.size() - 1; size += 7) {
    directory_.Write("server.key", own_.key.substr(0, size));
    EXPECT_FALSE(Check().ok()) << size;
  }
}

TEST_F(TlsMaterialTest, SecondCertificateOfTheChainMustBeWhole) {
  directory_.Write("server.crt",
                   own_.certificate + authority_.certificate().substr(0, 100));
  EXPECT_THAT(Refusal(), HasSubstr("its certificate 2 cannot be read"));
}

TEST_F(TlsMaterialTest, KeyMustFitTheCertificate) {
  directory_.Write("server.key", authority_.Issue().key);
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("tls.key_file: "), HasSubstr("does not fit"),
                    HasSubstr(directory_.Path("server.crt"))));
}

TEST_F(TlsMaterialTest, EncryptedKeyIsRefusedWithoutAskingForAPassphrase) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()),
                                                      &BIO_free);
  unsigned char passphrase[] = "secret";
  ASSERT_EQ(PEM_write_bio_PrivateKey(bio.get(), key.get(), EVP_aes_128_cbc(),
                                     passphrase, 6, nullptr, nullptr),
            1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  directory_.Write("server.key", std::string(data, static_cast<size_t>(size)));
  EXPECT_THAT(Refusal(), HasSubstr("is encrypted with a passphrase"));
}

}  // namespace
}  // namespace timecache::server
