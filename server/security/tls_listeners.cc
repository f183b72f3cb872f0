#include "server/security/tls_listeners.h"

#include <utility>

#include "absl/time/clock.h"

namespace timecache {

absl::StatusOr<std::unique_ptr<TlsListeners>> TlsListeners::Create(
    const v1::ServerConfig& config, FileWatch* watch) {
  std::unique_ptr<TlsListeners> all(new TlsListeners());
  bool any = false;
  for (const v1::Listener& listener : config.listeners()) {
    all->listeners_.emplace_back();
    if (!listener.has_tls()) continue;
    auto tls = TlsListener::Create(listener, watch);
    if (!tls.ok()) return tls.status();
    all->listeners_.back() = *std::move(tls);
    any = true;
  }
  if (any) all->reminder_ = std::thread([self = all.get()] { self->Run(); });
  return all;
}

TlsListeners::~TlsListeners() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  if (reminder_.joinable()) reminder_.join();
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

void TlsListeners::Run() {
  using Clock = std::chrono::steady_clock;
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      const Clock::time_point next = Clock::now() + kReminderInterval;
      while (!stopping_ && Clock::now() < next) wake_.WaitUntil(&mu_, next);
      if (stopping_) return;
    }
    for (const auto& listener : listeners_) {
      if (listener != nullptr) listener->RemindOfExpiry(absl::Now());
    }
  }
}

}  // namespace timecache
