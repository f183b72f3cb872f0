// A connection to NATS that speaks its protocol by hand, many messages to a
// write and many to a read.

#ifndef TIMECACHED_BENCH_PEERS_CLIENTS_NATS_CONNECTION_H_
#define TIMECACHED_BENCH_PEERS_CLIENTS_NATS_CONNECTION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/peers/clients/resp_connection.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {

// Good until the next Receive().
struct NatsMessage {
  std::string_view subject;
  int sid = 0;
  // Where to acknowledge it, or to answer; may be empty.
  std::string_view reply;
  // "NATS/1.0 404 No Messages\r\n...", empty without one.
  std::string_view header;
  std::string_view payload;
};

// Not thread-safe. Throws std::runtime_error on a refusal, and when the
// connection fails.
class NatsConnection {
 public:
  // Connects, and waits until the server is ready.
  explicit NatsConnection(int port);

  RespConnection& transport() { return transport_; }
  const RespConnection& transport() const { return transport_; }

  // Returns a subject that this connection alone has subscribed to; its messages
  // have this `sid`, from 2 on.
  std::string Inbox(int sid);
  // To be sent by the next flush of the transport.
  void Publish(std::string_view subject, std::string_view reply,
               std::string_view payload);
  // `header` is "Name: value\r\n" or several.
  void PublishWith(std::string_view header, std::string_view subject,
                   std::string_view reply, std::string_view payload);

  // The next message that has come whole; answers what is none.
  bool Next(NatsMessage* message);
  // Sends what waits, and waits for the next message.
  NatsMessage Await();
  // Calls JetStream's API: "STREAM.CREATE.events". An error is thrown.
  nlohmann::json Request(const std::string& api, const nlohmann::json& request);

 private:
  RespConnection transport_;
  const std::string requests_;
};

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_PEERS_CLIENTS_NATS_CONNECTION_H_
