#include "bench/peers/clients/nats_connection.h"

#include <poll.h>

#include <charconv>
#include <stdexcept>

namespace timecache::bench {
namespace {

constexpr std::string_view kEnd = "\r\n";
constexpr int kRequestSid = 1;

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("NATS sent no number: " + std::string(text));
  }
  return number;
}

std::string_view TakeWord(std::string_view* line) {
  const size_t end = line->find(' ');
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end == std::string_view::npos ? line->size() : end + 1);
  return word;
}

void WaitToRead(int fd) {
  pollfd poll_for = {fd, POLLIN, 0};
  if (poll(&poll_for, 1, RespConnection::kMaxSilenceMs) <= 0) {
    throw std::runtime_error("NATS is silent");
  }
}

std::string Subscribe(RespConnection* transport, int sid) {
  static int inboxes = 0;
  std::string subject = "_INBOX." + std::to_string(++inboxes);
  transport->AppendRaw("SUB " + subject + " " + std::to_string(sid) + "\r\n");
  return subject;
}

// Returns the subject of answers to requests.
std::string Connect(RespConnection* transport) {
  transport->AppendRaw(
      "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,"
      "\"no_responders\":true}\r\n");
  return Subscribe(transport, kRequestSid);
}

}  // namespace

NatsConnection::NatsConnection(int port)
    : transport_(port), requests_(Connect(&transport_)) {}

std::string NatsConnection::Inbox(int sid) {
  return Subscribe(&transport_, sid);
}

void NatsConnection::Publish(std::string_view subject, std::string_view reply,
                             std::string_view payload) {
  transport_.AppendRaw("PUB ");
  transport_.AppendRaw(subject);
  if (!reply.empty()) {
    transport_.AppendRaw(" ");
    transport_.AppendRaw(reply);
  }
  transport_.AppendRaw(" " + std::to_string(payload.size()) + "\r\n");
  transport_.AppendRaw(payload);
  transport_.AppendRaw(kEnd);
}

void NatsConnection::PublishWith(std::string_view header,
                                 std::string_view subject,
                                 std::string_view reply,
                                 std::string_view payload) {
  const std::string head = "NATS/1.0\r\n" + std::string(header) + "\r\n";
  transport_.AppendRaw("HPUB ");
  transport_.AppendRaw(subject);
  transport_.AppendRaw(" ");
  transport_.AppendRaw(reply);
  transport_.AppendRaw(" " + std::to_string(head.size()) + " " +
                       std::to_string(head.size() + payload.size()) + "\r\n");
  transport_.AppendRaw(head);
  transport_.AppendRaw(payload);
  transport_.AppendRaw(kEnd);
}

bool NatsConnection::Next(NatsMessage* message) {
  while (true) {
    const std::string_view received = transport_.received();
    const size_t end = received.find(kEnd);
    if (end == std::string_view::npos) return false;
    const size_t line_bytes = end + kEnd.size();
    std::string_view line = received.substr(0, end);
    const std::string_view kind = TakeWord(&line);
    if (kind != "MSG" && kind != "HMSG") {
      if (kind == "-ERR") throw std::runtime_error(std::string(line));
      if (kind == "PING") transport_.AppendRaw("PONG\r\n");
      transport_.Consume(line_bytes);
      continue;
    }
    *message = {};
    message->subject = TakeWord(&line);
    message->sid = static_cast<int>(Number(TakeWord(&line)));
    // What is left is [reply] [bytes of the header] bytes of all.
    const size_t numbers = kind == "HMSG" ? 2 : 1;
    std::string_view words[3];
    size_t count = 0;
    while (!line.empty() && count < 3) words[count++] = TakeWord(&line);
    if (count < numbers) throw std::runtime_error("NATS sent half a message");
    if (count > numbers) message->reply = words[0];
    const uint64_t bytes = Number(words[count - 1]);
    const uint64_t head = numbers == 2 ? Number(words[count - 2]) : 0;
    if (received.size() < line_bytes + bytes + kEnd.size()) return false;
    message->header = received.substr(line_bytes, head);
    message->payload = received.substr(line_bytes + head, bytes - head);
    transport_.Consume(line_bytes + bytes + kEnd.size());
    return true;
  }
}

NatsMessage NatsConnection::Await() {
  NatsMessage message;
  while (!Next(&message)) {
    transport_.Flush();
    WaitToRead(transport_.fd());
    transport_.Receive();
  }
  return message;
}

nlohmann::json NatsConnection::Request(const std::string& api,
                                       const nlohmann::json& request) {
  Publish("$JS.API." + api, requests_, request.is_null() ? "" : request.dump());
  NatsMessage answer = Await();
  while (answer.sid != kRequestSid) answer = Await();
  if (!answer.header.empty()) {
    throw std::runtime_error(api + ": " + std::string(answer.header));
  }
  nlohmann::json json = nlohmann::json::parse(answer.payload);
  if (json.contains("error")) {
    throw std::runtime_error(api + ": " + json["error"].dump());
  }
  return json;
}

}  // namespace timecache::bench
