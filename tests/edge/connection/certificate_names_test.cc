// What type of a certificate's name an access file means.
#include "server/edge/connection/certificate_names.h"

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(CertificateNamesTest, ANameTellsItsType) {
  EXPECT_EQ(NameTypeOf("a.example"), NameType::kDns);
  EXPECT_EQ(NameTypeOf("*.example"), NameType::kDns);
  EXPECT_EQ(NameTypeOf("10.0.0"), NameType::kDns);
  EXPECT_EQ(NameTypeOf("spiffe://prod/a"), NameType::kUri);
  EXPECT_EQ(NameTypeOf("urn:a"), NameType::kUri);
  EXPECT_EQ(NameTypeOf("mailto:a@b.example"), NameType::kUri);
  EXPECT_EQ(NameTypeOf("a@b.example"), NameType::kEmail);
  EXPECT_EQ(NameTypeOf("10.0.0.1"), NameType::kIp);
  EXPECT_EQ(NameTypeOf("::1"), NameType::kIp);
  EXPECT_EQ(NameTypeOf("2001:db8::1"), NameType::kIp);
}

TEST(CertificateNamesTest, AnAddressHasOneWayToBeWritten) {
  EXPECT_EQ(CanonicalName("2001:DB8:0::1"), "2001:db8::1");
  EXPECT_EQ(CanonicalName("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(CanonicalName("A.example"), "A.example");
}

}  // namespace
}  // namespace timecache::server
