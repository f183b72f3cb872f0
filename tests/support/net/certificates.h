// Certificates for tests of TLS, made when they are needed: nothing that
// expires lies in the repository.

#ifndef TIMECACHED_TESTS_SUPPORT_NET_CERTIFICATES_H_
#define TIMECACHED_TESTS_SUPPORT_NET_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache::test {

// A certificate and its private key, as PEM.
struct Certificate {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string common_name = "timecached";
  // As OpenSSL writes them.
  std::vector<std::string> sans = {"DNS:localhost", "IP:127.0.0.1"};
  // Around now.
  absl::Duration valid_before = absl::Hours(24);
  absl::Duration valid_after = absl::Hours(24 * 365);

  // A client's, known by this name.
  static CertificateOptions Client(const std::string& name);
  // One that was good until an hour ago.
  CertificateOptions Expired() const;
};

// An authority with a root certificate of its own; two of the same name do not
// trust each other. Keys are on P-256, which takes less than a millisecond.
// Const functions are thread-safe.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name = "timecached test CA");

  // The root, as PEM.
  const std::string& certificate() const { return certificate_; }
  Certificate Issue(const CertificateOptions& options = {}) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> root_;
  std::string certificate_;
};

// A directory for a test's files, gone with this object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string Path(const std::string& name) const { return path_ / name; }
  // Writes a file in one step, by a rename, and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;
  // Writes NAME.crt and NAME.key, one after the other.
  void Write(const std::string& name, const Certificate& certificate) const;

 private:
  std::filesystem::path path_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_NET_CERTIFICATES_H_
