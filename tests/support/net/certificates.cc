#include "tests/support/net/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <fstream>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace timecache::test {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Cert = std::shared_ptr<X509>;

template <typename Write>
std::string ToPem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()),
                                                      &BIO_free);
  EXPECT_EQ(write(bio.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(const Cert& certificate) {
  return ToPem(
      [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
}

Key NewKey() { return Key(EVP_EC_gen("P-256"), &EVP_PKEY_free); }

void AddExtension(X509* certificate, X509* issuer, int nid,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)>
      extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()),
                &X509_EXTENSION_free);
  ASSERT_NE(extension, nullptr) << value;
  EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
}

// With all but its issuer and its signature.
Cert NewCertificate(const std::string& name, EVP_PKEY* key, absl::Time from,
                    absl::Time to) {
  const Cert certificate(X509_new(), &X509_free);
  X509* const to_fill = certificate.get();
  EXPECT_EQ(X509_set_version(to_fill, X509_VERSION_3), 1);
  uint64_t serial = 0;
  EXPECT_EQ(
      RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)), 1);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(to_fill), serial >> 1);
  ASN1_TIME_set(X509_getm_notBefore(to_fill), absl::ToTimeT(from));
  ASN1_TIME_set(X509_getm_notAfter(to_fill), absl::ToTimeT(to));
  EXPECT_EQ(
      X509_NAME_add_entry_by_txt(
          X509_get_subject_name(to_fill), "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0),
      1);
  EXPECT_EQ(X509_set_pubkey(to_fill, key), 1);
  return certificate;
}

void Sign(X509* certificate, X509* issuer, EVP_PKEY* issuer_key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  EXPECT_GT(X509_sign(certificate, issuer_key, EVP_sha256()), 0);
}

}  // namespace

CertificateOptions CertificateOptions::Client(const std::string& name) {
  CertificateOptions options;
  options.common_name = name;
  options.sans = {"DNS:" + name};
  return options;
}

CertificateOptions CertificateOptions::Expired() const {
  CertificateOptions options = *this;
  options.valid_after = -absl::Hours(1);
  return options;
}

CertificateAuthority::CertificateAuthority(const std::string& name)
    : key_(NewKey()) {
  const absl::Time now = absl::Now();
  root_ = NewCertificate(name, key_.get(), now - absl::Hours(48),
                         now + absl::Hours(24 * 3650));
  AddExtension(root_.get(), root_.get(), NID_basic_constraints,
               "critical,CA:TRUE");
  AddExtension(root_.get(), root_.get(), NID_key_usage,
               "critical,keyCertSign,cRLSign");
  Sign(root_.get(), root_.get(), key_.get());
  certificate_ = ToPem(root_);
}

Certificate CertificateAuthority::Issue(
    const CertificateOptions& options) const {
  const absl::Time now = absl::Now();
  const Key key = NewKey();
  const Cert certificate =
      NewCertificate(options.common_name, key.get(), now - options.valid_before,
                     now + options.valid_after);
  AddExtension(certificate.get(), root_.get(), NID_basic_constraints,
               "critical,CA:FALSE");
  AddExtension(certificate.get(), root_.get(), NID_ext_key_usage,
               "serverAuth,clientAuth");
  if (!options.sans.empty()) {
    AddExtension(certificate.get(), root_.get(), NID_subject_alt_name,
                 absl::StrJoin(options.sans, ","));
  }
  Sign(certificate.get(), root_.get(), key_.get());
  return {ToPem(certificate), ToPem([&key](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0,
                                            nullptr, nullptr);
          })};
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name =
      (std::filesystem::temp_directory_path() / "timecached_test.XXXXXX")
          .string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::filesystem::remove_all(path_);
}

std::string TemporaryDirectory::Write(const std::string& name,
                                      const std::string& text) const {
  const std::filesystem::path part = path_ / (name + ".part");
  std::ofstream(part, std::ios::binary) << text;
  std::filesystem::rename(part, path_ / name);
  return path_ / name;
}

void TemporaryDirectory::Write(const std::string& name,
                               const Certificate& certificate) const {
  Write(name + ".crt", certificate.certificate);
  Write(name + ".key", certificate.key);
}

}  // namespace timecache::test
