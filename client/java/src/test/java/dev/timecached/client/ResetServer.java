package dev.timecached.client;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * Speaks HTTP/2 as far as it takes: gives one message on each stream, if it has one, and resets it
 * with ENHANCE_YOUR_CALM.
 */
final class ResetServer implements AutoCloseable {
  private static final int DATA = 0;
  private static final int HEADERS = 1;
  private static final int RST_STREAM = 3;
  private static final int SETTINGS = 4;
  private static final int PING = 6;
  private static final int ACK = 1;
  private static final int END_HEADERS = 4;
  private static final int ENHANCE_YOUR_CALM = 11;

  private final ServerSocket socket = new ServerSocket(0);
  private final byte[] message; // Null: none.

  ResetServer(byte[] message) throws IOException {
    this.message = message;
    Thread thread = new Thread(this::accept, "reset-server");
    thread.setDaemon(true);
    thread.start();
  }

  String address() {
    return "127.0.0.1:" + socket.getLocalPort();
  }

  private void accept() {
    while (!socket.isClosed()) {
      try (Socket connection = socket.accept()) {
        serve(new DataInputStream(connection.getInputStream()), connection.getOutputStream());
      } catch (IOException e) {
        // The client, or the test, has closed it.
      }
    }
  }

  private void serve(DataInputStream in, OutputStream out) throws IOException {
    in.readFully(new byte[24]); // The preface.
    write(out, SETTINGS, 0, 0);
    for (; ; ) {
      int length = in.readUnsignedByte() << 16 | in.readUnsignedShort();
      int type = in.readUnsignedByte();
      int flags = in.readUnsignedByte();
      int stream = in.readInt();
      byte[] payload = new byte[length];
      in.readFully(payload);
      if (type == SETTINGS && (flags & ACK) == 0) {
        write(out, SETTINGS, ACK, 0);
      } else if (type == PING && (flags & ACK) == 0) {
        write(out, PING, ACK, 0, payload);
      } else if (type == HEADERS) {
        reset(out, stream);
      }
    }
  }

  private void reset(OutputStream out, int stream) throws IOException {
    if (message != null) {
      byte[] type = "application/grpc".getBytes(StandardCharsets.US_ASCII);
      ByteArrayOutputStream head = new ByteArrayOutputStream();
      head.writeBytes(new byte[] {(byte) 0x88, 0x5f, (byte) type.length}); // :status 200, and
      head.writeBytes(type); // the content-type.
      write(out, HEADERS, END_HEADERS, stream, head.toByteArray());
      ByteArrayOutputStream body = new ByteArrayOutputStream();
      body.writeBytes(new byte[] {0, 0, 0, 0, (byte) message.length});
      body.writeBytes(message);
      write(out, DATA, 0, stream, body.toByteArray());
    }
    write(out, RST_STREAM, 0, stream, (byte) 0, (byte) 0, (byte) 0, (byte) ENHANCE_YOUR_CALM);
  }

  private static void write(OutputStream out, int type, int flags, int stream, byte... payload)
      throws IOException {
    ByteArrayOutputStream frame = new ByteArrayOutputStream();
    frame.write(payload.length >> 16);
    frame.write(payload.length >> 8);
    frame.write(payload.length);
    frame.write(type);
    frame.write(flags);
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame.write(stream >> shift);
    }
    frame.writeBytes(payload);
    out.write(frame.toByteArray());
    out.flush();
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
