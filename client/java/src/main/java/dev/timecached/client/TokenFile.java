package dev.timecached.client;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A token in a file that may be replaced: it is read again now and then, and when the server
 * refuses the token; one that cannot be read stays as it was. Thread-safe.
 */
final class TokenFile implements Supplier<String> {
  private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(10);

  private final Path file;

  // Guarded by this.
  private String token;
  private long readAt = System.nanoTime();
  private long changedAt = readAt;
  private Exception unread; // Why it could not be read. Null: it was.

  /**
   * Reads it.
   *
   * @throws UncheckedIOException for one that cannot be read
   * @throws IllegalArgumentException for one that holds something else
   */
  TokenFile(Path file) {
    this.file = file;
    try {
      token = read();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String check(String token, String what) {
    if (!token.matches("[!-~]{1,4096}")) {
      throw new IllegalArgumentException(
          what + ": must hold one token, of 1 to 4096 graphic characters, and nothing else");
    }
    return token;
  }

  @Override
  public synchronized String get() {
    if (System.nanoTime() - readAt >= INTERVAL_NANOS) {
      reread();
    }
    return token;
  }

  synchronized void reread() {
    readAt = System.nanoTime();
    try {
      String read = read();
      unread = null;
      if (!read.equals(token)) {
        token = read;
        changedAt = System.nanoTime();
      }
    } catch (IOException | IllegalArgumentException e) {
      unread = e; // The server says if the old one is not good any more.
    }
  }

  synchronized boolean hasChangedSince(long time) {
    return changedAt - time > 0;
  }

  /** Why it could not be read when that was last tried. Null: it was. */
  synchronized Exception unread() {
    return unread;
  }

  private String read() throws IOException {
    return check(Files.readString(file).strip(), "token file " + file);
  }
}
