// One BackupJournal call.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_BACKUP_STREAM_H_
#define TIMECACHED_SERVER_RPC_ADMIN_BACKUP_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/edge/response/open_streams.h"
#include "server/edge/response/response_account.h"
#include "server/rpc/admin/backup_source.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/call/stream_reactor.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// The state that all backups of a server share.
struct Backups {
  // Most backups in progress: each keeps trimmed segments from being removed.
  static constexpr int kMax = 2;

  // Null without a journal.
  BackupSource source;
  // The time-out of a piece that the client does not read: then the backup
  // ends.
  absl::Duration timeout;
  std::atomic<int> open{0};
};

// Reads a piece, on the thread of `turns`, and writes it: one at a time, so
// that a slow client holds only one piece of memory. A client that does not
// read a piece in time, or within kDrainTimeout once the server stops, would
// not receive a status either: the call is cancelled. Lives until OnDone.
class BackupStream final
    : public CallStream<BackupStream,
                        grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Drainable,
      public FairExecutor::Task {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;
  static constexpr absl::Duration kDrainTimeout = absl::Seconds(1);

  // Starts a stream, which lives until its call is done. None is owned; all
  // must outlive it.
  static BackupStream* Start(const CallGate& gate,
                             grpc::CallbackServerContext* context,
                             Backups* backups, OpenStreams* streams,
                             FairExecutor* executor,
                             const grpc::ByteBuffer& request);

  bool TakeTurn() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  bool OnDrain() override ABSL_LOCKS_EXCLUDED(mu_);
  // It checks before each piece.
  void OnAccessChanged() override {}

 private:
  BackupStream(const CallGate& gate, grpc::CallbackServerContext* context,
               Backups* backups, OpenStreams* streams, FairExecutor* executor)
      : CallStream(gate, methods::kBackupJournal, context),
        backups_(*backups),
        streams_(streams),
        executor_(executor) {}

  void Leave() override;
  absl::Status Authorize() override;
  absl::Status Open(const grpc::ByteBuffer& request);
  absl::Status CheckState() ABSL_LOCKS_EXCLUDED(mu_);
  void Continue();
  bool HasRoom();
  void Write(absl::string_view piece) ABSL_LOCKS_EXCLUDED(mu_);
  void CancelIn(absl::Duration time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Backups& backups_;
  OpenStreams* const streams_;
  FairExecutor* const executor_;
  // Whether it counts in backups_.open.
  bool counted_ = false;
  std::unique_ptr<BackupBytes> bytes_;
  absl::Status status_;
  grpc::ByteBuffer message_;

  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t writes_ ABSL_GUARDED_BY(mu_) = 0;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // Of the write in progress.
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_BACKUP_STREAM_H_
