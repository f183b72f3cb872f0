package dev.timecached.client;

import com.google.protobuf.ByteString;

/**
 * Makes values of a type of the user's into bytes, and back. Any JSON library makes one, as Gson or
 * Jackson:
 *
 * <pre>{@code
 * Codec<Order> orders = Codec.text(gson::toJson, json -> gson.fromJson(json, Order.class));
 * Codec<Order> orders =
 *     Codec.bytes(mapper::writeValueAsBytes, json -> mapper.readValue(json, Order.class));
 *
 * client.put("order-17", orders.encode(order));
 * Order order = client.get("order-17").orElseThrow().value(orders);
 * }</pre>
 *
 * <p>Thread-safe if the functions are.
 *
 * @param <T> the type
 */
public final class Codec<T> {
  /** One direction. */
  @FunctionalInterface
  public interface Conversion<A, B> {
    /** Converts a value. */
    B convert(A from) throws Exception;
  }

  private final Conversion<? super T, ByteString> write;
  private final Conversion<ByteString, ? extends T> read;

  private Codec(
      Conversion<? super T, ByteString> write, Conversion<ByteString, ? extends T> read) {
    this.write = write;
    this.read = read;
  }

  /** Of functions of bytes. */
  public static <T> Codec<T> bytes(
      Conversion<? super T, byte[]> write, Conversion<byte[], ? extends T> read) {
    return new Codec<>(
        value -> ByteString.copyFrom(write.convert(value)),
        bytes -> read.convert(bytes.toByteArray()));
  }

  /** Of functions of text, which is sent as UTF-8. */
  public static <T> Codec<T> text(
      Conversion<? super T, String> write, Conversion<String, ? extends T> read) {
    return new Codec<>(
        value -> ByteString.copyFromUtf8(write.convert(value)),
        bytes -> {
          if (!bytes.isValidUtf8()) {
            throw new IllegalArgumentException("the bytes are not UTF-8");
          }
          return read.convert(bytes.toStringUtf8());
        });
  }

  /**
   * The bytes of a value.
   *
   * @throws IllegalArgumentException for a checked exception of the function; others pass
   */
  public ByteString encode(T value) {
    return convert(write, value);
  }

  /**
   * The value of such bytes. Empty ones, as of {@link WatchOptions#keysOnly}, are for the function
   * to refuse.
   *
   * @throws IllegalArgumentException for a checked exception of the function; others pass
   */
  public T decode(ByteString bytes) {
    return convert(read, bytes);
  }

  private static <A, B> B convert(Conversion<A, B> conversion, A from) {
    try {
      return conversion.convert(from);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
  }
}
