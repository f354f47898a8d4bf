// The runtime wrappers on a device; and what they say where there is none.
#include <numeric>
#include <vector>

#include "kernels/runtime/error.h"
#include "kernels/runtime/event.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::runtime {
namespace {

constexpr int kInvalidValue = 1;  // cudaErrorInvalidValue

TEST(Check, AFailedCallNamesItselfThePlaceAndTheReason) {
  EXPECT_NO_THROW(check(0, "cudaNothing"));
  const int line = __LINE__ + 1;
  const std::string text = error_of([] { check(kInvalidValue, "cudaSomething"); });
  EXPECT_EQ(text, "cudaSomething failed at " + std::string(__FILE__) + ":" + std::to_string(line) +
                      ": cudaErrorInvalidValue: invalid argument");
}

TEST(DeviceQueryTest, ThereIsADeviceOrAReasonButNotBoth) {
  const DeviceQuery& query = device_query();
  EXPECT_EQ(query.device.has_value(), query.reason.empty()) << query.reason;
  EXPECT_EQ(&device_query(), &query);
}

TEST(DeviceQueryTest, ThereIsADeviceWhereSomeAreCounted) {
  EXPECT_EQ(device_query().device.has_value(), device_count() > 0);
}

class Device : public GpuTest {};

TEST_F(Device, HasAName) {
  const DeviceInfo& info = *device_query().device;
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.sm, 50);
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GT(info.clock_mhz, 0);
}

TEST_F(Device, BuffersGiveBackWhatWasPutIn) {
  const Stream stream;
  std::vector<int> sent(1000), got(600);
  std::iota(sent.begin(), sent.end(), 0);
  Buffer buffer(sent.size() * sizeof(int));
  buffer.upload(sent.data(), buffer.bytes(), stream);
  buffer.download(got.data(), got.size() * sizeof(int), stream, 400 * sizeof(int));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin() + 400));
  buffer.fill(0xff, stream);
  buffer.download(got.data(), got.size() * sizeof(int), stream);
  EXPECT_EQ(got, std::vector<int>(600, -1));
  EXPECT_EQ(error_of([&] { buffer.download(got.data(), 8, stream, 3996); }),
            "device buffer download: expected a range inside 4000 bytes, got 8 bytes at 3996");
}

TEST_F(Device, AGraphRepeatsWhatWasCaptured) {
  const Stream stream;
  Buffer buffer(64);
  Graph graph(stream, [&] { buffer.fill(7, stream); });
  buffer.fill(1, stream);
  Event before, after;
  before.record(stream.get());
  graph.launch(stream);
  after.record(stream.get());
  std::vector<std::uint8_t> got(64);
  buffer.download(got.data(), got.size(), stream);
  EXPECT_EQ(got, std::vector<std::uint8_t>(64, 7));
  EXPECT_GE(after.milliseconds_since(before), 0.0f);
}

TEST_F(Device, ACaptureRefusesASynchronisation) {
  const Stream stream;
  EXPECT_NE(error_of([&] { Graph graph(stream, [&] { stream.sync(); }); }), "no error");
  EXPECT_NO_THROW(stream.sync());
}

}  // namespace
}  // namespace deltagauge::kernels::runtime
