// l2norm on a device: what the checks of validate do not reach. Comparisons are bit for bit.
#include "kernels/l2norm/l2norm.h"

#include "core/inputs.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::l2norm {
namespace {

using namespace runtime;

class L2norm : public GpuTest {};

Tensor run(const Args& args, const Tensor& x) {
  const Stream stream;
  const Buffer in = to_device(x, stream), out(x.nbytes());
  Args a = args;
  a.x = in.as();
  a.y = out.as();
  fwd(a, stream.get());
  return to_host(out, x.dtype(), x.shape(), stream);
}

TEST_F(L2norm, ACapturedCallGivesTheBitsOfAnEagerOne) {
  const Case c = parse_id("l2norm/fwd/len=37,HK=3,K=128/bf16");
  const Tensor x = get(make_inputs(c), "x");
  const Stream stream;
  const Buffer in = to_device(x, stream);
  Buffer out(x.nbytes());
  const Args args{.x = in.as(), .y = out.as(), .T = 37, .N = 1, .H = 3, .K = 128};
  Graph graph(stream, [&] { fwd(args, stream.get()); });
  out.fill(0xff, stream);
  graph.launch(stream);
  EXPECT_TRUE(bitwise_equal(to_host(out, x.dtype(), x.shape(), stream), run(args, x)));
}

// Which lane adds which channel does not depend on how the row is read.
TEST_F(L2norm, RowsReadOneByOneGiveTheBitsOfRowsReadInPacks) {
  for (const char* id :
       {"l2norm/fwd/len=9,HK=3,K=128/bf16", "l2norm/fwd/len=9,HK=3,K=64/f16", "l2norm/fwd/len=9,HK=3,K=1024/f32"}) {
    const Case c = parse_id(id);
    const Tensor x = get(make_inputs(c), "x");
    const std::size_t size = size_of(x.dtype());
    Args args{.T = 9, .N = 1, .H = 3, .K = c.problem.K, .io = c.problem.io};
    const Tensor packs = run(args, x);
    const Stream stream;
    Buffer shifted(x.nbytes() + size);
    shifted.upload(x.data(), x.nbytes(), stream, size);
    args.x = shifted.at(size);  // in place, one element off the alignment
    args.y = shifted.at(size);
    fwd(args, stream.get());
    EXPECT_TRUE(bitwise_equal(to_host(shifted, x.dtype(), x.shape(), stream, 1), packs)) << id;
  }
}

TEST_F(L2norm, OffsetsPast2To31ElementsReachTheirRows) {
  const Case c = parse_id("l2norm/fwd/len=2,HK=64,K=128/bf16");
  const Tensor x = get(make_inputs(c), "x");
  const Args small{.T = 2, .N = 1, .H = 64, .K = 128};
  Args big = small;
  big.T = (std::int64_t{1} << 31) / (64 * 128) + 2;
  const auto elements = static_cast<std::size_t>(big.T * 64 * 128);
  if (static_cast<std::size_t>(device_query().device->memory_bytes) < 3 * elements)
    GTEST_SKIP() << "needs " << 3 * elements << " bytes of device memory";
  const Stream stream;
  Buffer rows(2 * elements);
  rows.fill(0, stream);
  const std::size_t last = elements - static_cast<std::size_t>(x.numel());
  rows.upload(x.data(), x.nbytes(), stream, 2 * last);
  big.x = rows.as();
  big.y = rows.as();
  fwd(big, stream.get());
  EXPECT_TRUE(bitwise_equal(to_host(rows, x.dtype(), x.shape(), stream, last), run(small, x)));
}

}  // namespace
}  // namespace deltagauge::kernels::l2norm
