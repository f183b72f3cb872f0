#include "server/edge/tls_listener.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/housekeeping.h"
#include "server/edge/tls_listeners.h"
#include "tests/support/net/certificates.h"

namespace timecache::server {
namespace {

using test::CertificateAuthority;
using test::CertificateOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kDay = absl::Hours(24);

CertificateOptions Lasting(absl::Duration valid_after) {
  CertificateOptions options;
  options.valid_after = valid_after;
  return options;
}

// What happens on connections is in tests/integration/security/tls_test.cc.
class TlsListenerTest : public ::testing::Test {
 protected:
  TlsListenerTest() {
    config_.set_address("127.0.0.1:7171");
    config_.mutable_tls()->set_certificate_file(directory_.Path("server.crt"));
    config_.mutable_tls()->set_key_file(directory_.Path("server.key"));
    directory_.Write("server", authority_.Issue());
  }

  // Returns what it logged.
  std::string Create() {
    ::testing::internal::CaptureStderr();
    // Only Check looks at the files.
    auto listener = TlsListener::Create(config_, &watch_, absl::Hours(1));
    EXPECT_TRUE(listener.ok()) << listener.status();
    if (listener.ok()) listener_ = *std::move(listener);
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Check() {
    ::testing::internal::CaptureStderr();
    watch_.Check();
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Remind(absl::Time now) {
    ::testing::internal::CaptureStderr();
    listener_->RemindOfExpiry(now);
    return ::testing::internal::GetCapturedStderr();
  }

  const test::TemporaryDirectory directory_;
  const CertificateAuthority authority_;
  config::v1::Listener config_;
  Housekeeping housekeeping_;
  FileWatch watch_;
  std::unique_ptr<TlsListener> listener_;
};

TEST_F(TlsListenerTest, LogsWhatItServesWith) {
  EXPECT_THAT(Create(),
              AllOf(HasSubstr("tls_loaded"), HasSubstr("CN=timecached"),
                    HasSubstr("DNS:localhost"), HasSubstr("not_after"),
                    Not(HasSubstr("tls_expir"))));
  EXPECT_EQ(listener_->state().address, "127.0.0.1:7171");
  EXPECT_EQ(listener_->state().reloads, 1u);
  EXPECT_GT(listener_->state().not_after, absl::Now() + 300 * kDay);
  EXPECT_NE(listener_->credentials(), nullptr);
}

TEST_F(TlsListenerTest, ErrorAtTheStartNamesListenerFieldAndFile) {
  directory_.Write("server.key", "");
  const auto listener = TlsListener::Create(config_, &watch_);
  EXPECT_THAT(std::string(listener.status().message()),
              StartsWith("listener 127.0.0.1:7171: tls.key_file: " +
                         directory_.Path("server.key") + ": "));
}

TEST_F(TlsListenerTest, TakesWhatMakesSenseAndKeepsTheOldElse) {
  Create();
  const absl::Time not_after = listener_->state().not_after;
  directory_.Write("server.key", authority_.Issue().key);
  EXPECT_THAT(Check(),
              AllOf(HasSubstr("tls_refused"), HasSubstr("does not fit")));
  EXPECT_EQ(listener_->state().refusals, 1u);
  EXPECT_EQ(listener_->state().not_after, not_after);

  directory_.Write("server", authority_.Issue(Lasting(700 * kDay)));
  EXPECT_THAT(Check(), HasSubstr("tls_reloaded"));
  EXPECT_EQ(listener_->state().reloads, 2u);
  EXPECT_GT(listener_->state().not_after, not_after);
}

TEST_F(TlsListenerTest, ExpiredCertificateDoesNotReplaceAGoodOne) {
  Create();
  directory_.Write("server", authority_.Issue(CertificateOptions().Expired()));
  EXPECT_THAT(Check(), AllOf(HasSubstr("tls_refused"), HasSubstr("expired")));
  EXPECT_GT(listener_->state().not_after, absl::Now());
}

TEST_F(TlsListenerTest, ExpiredCertificateIsServedAndComplainedOf) {
  directory_.Write("server", authority_.Issue(CertificateOptions().Expired()));
  EXPECT_THAT(Create(),
              AllOf(HasSubstr("tls_loaded"), HasSubstr("tls_expired")));
}

TEST_F(TlsListenerTest, RemindsDailyFromSevenDaysBeforeTheEnd) {
  directory_.Write("server", authority_.Issue(Lasting(30 * kDay)));
  Create();
  const absl::Time end = listener_->state().not_after;
  EXPECT_THAT(Remind(end - 7 * kDay - absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(Remind(end - 7 * kDay),
              AllOf(HasSubstr("tls_expiring"), HasSubstr("hours_left=168"),
                    HasSubstr(directory_.Path("server.crt"))));
  EXPECT_THAT(Remind(end - 6 * kDay - absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(Remind(end - 6 * kDay), HasSubstr("tls_expiring"));
  EXPECT_THAT(Remind(end + kDay), HasSubstr("tls_expired"));
}

TEST_F(TlsListenerTest, ListenersAreInTheOrderOfTheConfiguration) {
  config::v1::ServerConfig config;
  config.add_listeners()->set_address("127.0.0.1:1");
  *config.add_listeners() = config_;
  const auto all = TlsListeners::Create(config, &watch_, &housekeeping_);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ((*all)->credentials().size(), 2u);
  EXPECT_EQ((*all)->credentials()[0], nullptr);
  EXPECT_NE((*all)->credentials()[1], nullptr);
  ASSERT_EQ((*all)->states().size(), 1u);
  EXPECT_EQ((*all)->states()[0].address, "127.0.0.1:7171");
}

}  // namespace
}  // namespace timecache::server
