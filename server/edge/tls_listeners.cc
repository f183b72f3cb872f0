#include "server/edge/tls_listeners.h"

#include <utility>

#include "absl/time/clock.h"

namespace timecache::server {

absl::StatusOr<std::unique_ptr<TlsListeners>> TlsListeners::Create(
    const config::v1::ServerConfig& config, FileWatch* watch,
    Housekeeping* housekeeping) {
  std::unique_ptr<TlsListeners> all(new TlsListeners());
  bool any = false;
  for (const config::v1::Listener& listener : config.listeners()) {
    all->listeners_.emplace_back();
    if (!listener.has_tls()) continue;
    auto tls = TlsListener::Create(listener, watch);
    if (!tls.ok()) return tls.status();
    all->listeners_.back() = *std::move(tls);
    any = true;
  }
  if (any) {
    all->reminder_ = housekeeping->Every(kReminderInterval, [self = all.get()] {
      for (const auto& listener : self->listeners_) {
        if (listener != nullptr) listener->RemindOfExpiry(absl::Now());
      }
    });
  }
  return all;
}

std::vector<std::shared_ptr<grpc::ServerCredentials>>
TlsListeners::credentials() const {
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  for (const auto& listener : listeners_) {
    credentials.push_back(listener == nullptr ? nullptr
                                              : listener->credentials());
  }
  return credentials;
}

std::vector<TlsState> TlsListeners::states() const {
  std::vector<TlsState> states;
  for (const auto& listener : listeners_) {
    if (listener != nullptr) states.push_back(listener->state());
  }
  return states;
}

}  // namespace timecache::server
