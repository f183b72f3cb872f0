#include "server/edge/tls_material.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

template <auto free>
struct Free {
  template <typename Type>
  void operator()(Type* object) const {
    free(object);
  }
};

using BioPtr = std::unique_ptr<BIO, Free<BIO_free>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

// A chain is a few certificates, a bundle of all public roots some 150.
constexpr size_t kMaxCertificates = 1000;

BioPtr Reader(const std::string& bytes) {
  return BioPtr(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

std::string TakeText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// OpenSSL's error text. Removes the error from its queue.
std::string WhyRefused() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown reason" : reason;
}

absl::Status Wrong(absl::string_view field, const std::string& path,
                   absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("tls.", field, ": ", path, ": ", what));
}

absl::StatusOr<std::vector<CertificatePtr>> ParseCertificates(
    absl::string_view field, const std::string& path, const std::string& pem) {
  std::vector<CertificatePtr> certificates;
  const BioPtr bio = Reader(pem);
  ERR_clear_error();
  while (X509* certificate =
             PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
    if (certificates.size() > kMaxCertificates) {
      return Wrong(
          field, path,
          absl::StrCat("has more than ", kMaxCertificates, " certificates"));
    }
  }
  // The end of a valid file has no further "BEGIN".
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM &&
                      ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  const std::string why = WhyRefused();
  if (!at_end) {
    return Wrong(
        field, path,
        absl::StrCat("its certificate ", certificates.size() + 1,
                     " cannot be read (", why, "): is the file complete?"));
  }
  if (certificates.empty()) {
    return Wrong(field, path,
                 "has no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  }
  return certificates;
}

absl::StatusOr<KeyPtr> ParseKey(const std::string& path,
                                const std::string& pem) {
  const BioPtr bio = Reader(pem);
  ERR_clear_error();
  // A server cannot ask for a passphrase.
  bool asked = false;
  const auto no_passphrase = [](char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
  };
  KeyPtr key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked));
  if (key != nullptr) return key;
  const std::string why = WhyRefused();
  if (asked) {
    return Wrong("key_file", path,
                 "is encrypted with a passphrase: store it without one, "
                 "readable by the server alone (openssl pkey -in FILE)");
  }
  return Wrong("key_file", path,
               absl::StrCat("has no private key in PEM (", why, ")"));
}

// TLS's own check of the pair: it refuses keys that are too short, and hashes
// that are no longer accepted.
absl::Status TryContext(const config::v1::TlsConfig& config,
                        const std::vector<CertificatePtr>& chain,
                        EVP_PKEY* key) {
  const ContextPtr context(SSL_CTX_new(TLS_server_method()));
  ERR_clear_error();
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return Wrong("certificate_file", config.certificate_file(), WhyRefused());
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return Wrong("certificate_file", config.certificate_file(),
                   absl::StrCat("its certificate ", i + 1, ": ", WhyRefused()));
    }
  }
  if (X509_check_private_key(chain.front().get(), key) != 1) {
    ERR_clear_error();
    return Wrong("key_file", config.key_file(),
                 absl::StrCat("does not fit the first certificate of ",
                              config.certificate_file(),
                              ": the server's own certificate comes first, and "
                              "both files are replaced together"));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return Wrong("key_file", config.key_file(), WhyRefused());
  }
  return absl::OkStatus();
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTimeT(timegm(&parts));
}

std::string SubjectOf(const X509& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(&certificate), 0,
                     XN_FLAG_RFC2253);
  return TakeText(bio.get());
}

std::string SansOf(const X509& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    if (i > 0) BIO_puts(bio.get(), ", ");
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(names.get(), i));
  }
  return TakeText(bio.get());
}

void Describe(const std::vector<CertificatePtr>& chain, TlsMaterial* material) {
  const X509& own = *chain.front();
  material->subject = SubjectOf(own);
  material->sans = SansOf(own);
  material->not_before = ToTime(X509_get0_notBefore(&own));
  material->not_after = absl::InfiniteFuture();
  for (const CertificatePtr& certificate : chain) {
    material->not_after = std::min(
        material->not_after, ToTime(X509_get0_notAfter(certificate.get())));
  }
}

}  // namespace

std::vector<std::string> TlsFiles(const config::v1::TlsConfig& config) {
  std::vector<std::string> files = {config.certificate_file(),
                                    config.key_file()};
  if (!config.client_ca_file().empty()) {
    files.push_back(config.client_ca_file());
  }
  return files;
}

absl::StatusOr<TlsMaterial> CheckTlsMaterial(
    const config::v1::TlsConfig& config, const FileWatch::Contents& contents) {
  constexpr std::array<absl::string_view, 3> kFields = {
      "certificate_file", "key_file", "client_ca_file"};
  for (size_t i = 0; i < contents.size(); ++i) {
    if (contents[i].ok()) continue;
    const absl::Status& why = contents[i].status();
    return absl::Status(why.code(),
                        absl::StrCat("tls.", kFields[i], ": ", why.message()));
  }
  TlsMaterial material;
  material.certificate_chain = *contents[0];
  material.private_key = *contents[1];
  const auto chain = ParseCertificates(kFields[0], config.certificate_file(),
                                       material.certificate_chain);
  if (!chain.ok()) return chain.status();
  const auto key = ParseKey(config.key_file(), material.private_key);
  if (!key.ok()) return key.status();
  absl::Status status = TryContext(config, *chain, key->get());
  if (!status.ok()) return status;
  if (contents.size() > 2) {
    material.client_roots = *contents[2];
    status = ParseCertificates(kFields[2], config.client_ca_file(),
                               material.client_roots)
                 .status();
    if (!status.ok()) return status;
  }
  Describe(*chain, &material);
  return material;
}

}  // namespace timecache::server
