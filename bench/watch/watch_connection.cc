#include "bench/watch/watch_connection.h"

#include "absl/time/clock.h"

namespace timecache::bench {
namespace {

std::shared_ptr<grpc::Channel> ConnectApart(const std::string& address) {
  // Without it all channels to an address share one connection.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

Connection::Connection(const std::string& address)
    : stub_(ConnectApart(address)) {}

Connection::~Connection() { Join(); }

void Connection::Start() {
  if (calls_ == 0) queue_.Shutdown();
  thread_ = std::thread([this] {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      static_cast<Step*>(tag)->Run(ok, absl::Now());
    }
  });
}

void Connection::EndCall() {
  if (--calls_ == 0) queue_.Shutdown();
}

void Connection::Join() {
  if (thread_.joinable()) thread_.join();
}

WatchCall::WatchCall(Connection* connection, const char* method,
                     absl::Time give_up)
    : connection_(connection),
      method_(method),
      start_([this](bool ok, absl::Time) { OnStart(ok); }),
      // A write that failed shows in the read.
      write_([](bool, absl::Time) {}),
      read_([this](bool ok, absl::Time now) { OnRead(ok, now); }),
      finish_([this](bool, absl::Time) { OnFinish(); }) {
  connection->AddCall();
  context_.set_deadline(absl::ToChronoTime(give_up));
}

void WatchCall::Start(const grpc::ByteBuffer& request) {
  request_ = request;
  call_ = connection_->stub()->PrepareCall(&context_, method_,
                                           connection_->queue());
  call_->StartCall(&start_);
}

void WatchCall::OnStart(bool ok) {
  if (!ok) return call_->Finish(&status_, &finish_);
  call_->WriteLast(request_, grpc::WriteOptions(), &write_);
  Read();
}

void WatchCall::OnRead(bool ok, absl::Time now) {
  if (!ok) return call_->Finish(&status_, &finish_);
  if (OnMessage(&message_, now)) Read();
}

void WatchCall::OnFinish() {
  OnEnd(status_);
  connection_->EndCall();
}

}  // namespace timecache::bench
