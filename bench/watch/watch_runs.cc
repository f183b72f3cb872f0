#include "bench/watch/watch_runs.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::bench {

void Progress(const std::string& line) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
}

void Print(const nlohmann::ordered_json& figures, bool json) {
  Progress("");
  if (json) {
    std::printf("%s\n", figures.dump().c_str());
    return;
  }
  for (const auto& [name, value] : figures.items()) {
    std::printf("%-26s %s\n", name.c_str(),
                value.is_number_float()
                    ? absl::StrFormat("%.3f", value.get<double>()).c_str()
                    : value.dump().c_str());
  }
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

void Check(const grpc::Status& status) {
  if (!status.ok()) Fail(status.error_message());
}

void CreateNamespace(const std::shared_ptr<grpc::Channel>& channel,
                     const v1::CreateNamespaceRequest& request,
                     absl::Time give_up) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(give_up));
  v1::CreateNamespaceResponse response;
  Check(v1::NamespaceService::NewStub(channel)->CreateNamespace(
      &context, request, &response));
}

absl::Duration StormLead(const Arguments& arguments) {
  if (arguments.lead_ms > 0) return absl::Milliseconds(arguments.lead_ms);
  return absl::Seconds(2) +
         absl::Milliseconds(arguments.watchers + arguments.members) +
         static_cast<double>(arguments.entries) * absl::Microseconds(10);
}

absl::Duration FillAndWait(Storm* storm) {
  Progress(absl::StrFormat("putting %d entries", storm->entries()));
  const absl::Duration before = storm->Fill();
  Progress(absl::StrFormat("%d entries, dead in %s", storm->entries(),
                           absl::FormatDuration(before)));
  absl::SleepFor(storm->death() - absl::Now() - absl::Milliseconds(20));
  return before;
}

}  // namespace timecache::bench
