package dev.timecached.client;

import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import io.grpc.util.AdvancedTlsX509KeyManager;
import io.grpc.util.AdvancedTlsX509TrustManager;
import io.grpc.util.CertificateUtils;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.util.Arrays;

/**
 * The PEM files of a client's TLS. They may be replaced: {@link #refresh} reads them again, for the
 * connections that are made from then on. gRPC's own way to do so takes a thread, waits a minute or
 * more, and does not see a new certificate of the same key. Thread-safe.
 */
final class CertificateFiles {
  private final Path caFile; // Null: the system's roots.
  private final Path certificateFile; // Null, as is the key's: there is none.
  private final Path keyFile;
  private final AdvancedTlsX509TrustManager trust;
  private final AdvancedTlsX509KeyManager keys = new AdvancedTlsX509KeyManager();

  // Guarded by this. What is in use.
  private byte[] roots = {};
  private byte[] certificate = {};
  private byte[] key = {};

  /**
   * Reads them.
   *
   * @throws UncheckedIOException for one that cannot be read
   * @throws IllegalArgumentException for one that holds something else
   */
  CertificateFiles(Path caFile, Path certificateFile, Path keyFile) {
    this.caFile = caFile;
    this.certificateFile = certificateFile;
    this.keyFile = keyFile;
    try {
      trust = AdvancedTlsX509TrustManager.newBuilder().build();
      readRoots();
      readIdentity();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (GeneralSecurityException e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
  }

  ChannelCredentials credentials() {
    TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
    if (caFile != null) {
      builder.trustManager(trust);
    }
    if (certificateFile != null) {
      builder.keyManager(keys);
    }
    return builder.build();
  }

  /** Files that cannot be read, or do not fit each other yet, leave what is in use as it is. */
  synchronized void refresh() {
    try {
      readRoots();
    } catch (IOException | GeneralSecurityException e) {
      // The handshake says if the old ones are not good any more.
    }
    try {
      readIdentity();
    } catch (IOException | GeneralSecurityException e) {
      // As above.
    }
  }

  private void readRoots() throws IOException, GeneralSecurityException {
    if (caFile == null) {
      return;
    }
    byte[] read = Files.readAllBytes(caFile);
    if (!Arrays.equals(read, roots)) {
      trust.updateTrustCredentials(certificatesOf(read, caFile));
      roots = read;
    }
  }

  private void readIdentity() throws IOException, GeneralSecurityException {
    if (certificateFile == null) {
      return;
    }
    byte[] readCertificate = Files.readAllBytes(certificateFile);
    byte[] readKey = Files.readAllBytes(keyFile);
    if (Arrays.equals(readCertificate, certificate) && Arrays.equals(readKey, key)) {
      return;
    }
    X509Certificate[] chain = certificatesOf(readCertificate, certificateFile);
    PrivateKey parsed = keyOf(readKey);
    if (!fits(parsed, chain[0])) {
      throw new GeneralSecurityException(
          keyFile + ": is not the key of the certificate in " + certificateFile);
    }
    keys.updateIdentityCredentials(chain, parsed);
    certificate = readCertificate;
    key = readKey;
  }

  private static X509Certificate[] certificatesOf(byte[] pem, Path file)
      throws GeneralSecurityException {
    X509Certificate[] chain;
    try {
      chain = CertificateUtils.getX509Certificates(new ByteArrayInputStream(pem));
    } catch (GeneralSecurityException e) {
      throw new GeneralSecurityException(file + ": holds no certificates in PEM", e);
    }
    if (chain.length == 0) {
      throw new GeneralSecurityException(file + ": holds no certificates in PEM");
    }
    return chain;
  }

  private PrivateKey keyOf(byte[] pem) throws GeneralSecurityException {
    try {
      return CertificateUtils.getPrivateKey(new ByteArrayInputStream(pem));
    } catch (IOException | GeneralSecurityException | RuntimeException e) {
      throw new GeneralSecurityException(keyFile + ": holds no private key in PEM (PKCS 8)", e);
    }
  }

  private static boolean fits(PrivateKey key, X509Certificate certificate)
      throws GeneralSecurityException {
    if (!key.getAlgorithm().equals(certificate.getPublicKey().getAlgorithm())) {
      return false;
    }
    Signature signature =
        Signature.getInstance("SHA256with" + (key.getAlgorithm().equals("RSA") ? "RSA" : "ECDSA"));
    signature.initSign(key);
    byte[] signed = signature.sign();
    signature.initVerify(certificate.getPublicKey());
    return signature.verify(signed);
  }
}
