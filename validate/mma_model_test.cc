// reference/mma.h against the tensor core of this device: 10^5 random and crafted vectors for each operand format, every
// bit of every result. The random numbers are those of make_inputs; each regime bends them to one kind of trouble.
#include <array>
#include <bit>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

#include "core/inputs.h"
#include "kernels/probe/mma_probe.h"
#include "kernels/runtime/testing.h"
#include "reference/mma.h"

namespace deltagauge::validate {
namespace {

using kernels::probe::MmaKind;
using reference::MmaModel;

constexpr std::int64_t kVectors = 20000;  // of each regime
constexpr int kLength = 16;               // numbers drawn for a and for b; tf32 uses the first 8
constexpr int kDrawn = 5 * kLength;       // of one vector: a, b, exponents of a and of b, c and its exponent

float to_format(MmaKind kind, float x) {
  if (kind == MmaKind::bf16) return round_bf16(x);
  return kind == MmaKind::f16 ? round_f16(x) : truncate_tf32(x);
}

// One vector's normal deviates.
struct Draw {
  const float* n;
  float a(int i) const { return n[i]; }
  float b(int i) const { return n[kLength + i]; }
  int exponent_a(int i, float spread) const { return static_cast<int>(std::lrint(spread * n[2 * kLength + i])); }
  int exponent_b(int i, float spread) const { return static_cast<int>(std::lrint(spread * n[3 * kLength + i])); }
  float c() const { return n[4 * kLength]; }
  int exponent_c(float spread) const { return static_cast<int>(std::lrint(spread * n[4 * kLength + 1])); }
};

struct Vector {
  std::array<float, kLength> a, b;
  float c;
};

using Bend = Vector (*)(MmaKind, const Draw&);

Vector plain(MmaKind, const Draw& d) {
  Vector v{};
  for (int i = 0; i < kLength; ++i) {
    v.a[i] = d.a(i);
    v.b[i] = d.b(i);
  }
  v.c = d.c();
  return v;
}

// Exponents far apart, so that alignment drops bits; f16 has room for less.
Vector spread(MmaKind kind, const Draw& d) {
  const float width = kind == MmaKind::f16 ? 3 : 12;
  Vector v = plain(kind, d);
  for (int i = 0; i < kLength; ++i) {
    v.a[i] = std::ldexp(v.a[i], d.exponent_a(i, width));
    v.b[i] = std::ldexp(v.b[i], d.exponent_b(i, width));
  }
  v.c = std::ldexp(v.c, d.exponent_c(2 * width));
  return v;
}

// Products in pairs of opposite sign, equal but for the last bits; c takes away one of them.
Vector cancellation(MmaKind kind, const Draw& d) {
  Vector v = spread(kind, d);
  for (int i = 0; i + 1 < kLength; i += 2) {
    v.a[i + 1] = -v.a[i];
    v.b[i + 1] = d.exponent_b(i, 1) == 0 ? v.b[i] : v.b[i] * (1 + 0x1p-7f);
  }
  if (d.exponent_c(1) != 0) v.c = -to_format(kind, v.a[0]) * to_format(kind, v.b[0]);
  return v;
}

// Operands below the smallest normal of their format, and sums below that of f32.
Vector subnormal(MmaKind kind, const Draw& d) {
  Vector v = plain(kind, d);
  const int down = kind == MmaKind::f16 ? -20 : -129;
  for (int i = 0; i < kLength; ++i) {
    v.a[i] = std::ldexp(v.a[i], down + d.exponent_a(i, 3));
    v.b[i] = std::ldexp(v.b[i], kind == MmaKind::f16 ? d.exponent_b(i, 8) - 12 : d.exponent_b(i, 3) - 8);
  }
  v.c = std::ldexp(v.c, (kind == MmaKind::f16 ? -40 : -138) + d.exponent_c(6));
  return v;
}

// Near and past the largest finite values.
Vector large(MmaKind kind, const Draw& d) {
  Vector v = plain(kind, d);
  for (int i = 0; i < kLength; ++i) {
    v.a[i] = std::ldexp(v.a[i], kind == MmaKind::f16 ? 13 : 62 + d.exponent_a(i, 2));
    v.b[i] = std::ldexp(v.b[i], kind == MmaKind::f16 ? 13 : 62 + d.exponent_b(i, 2));
  }
  v.c = std::ldexp(v.c, 126);
  return v;
}

// Powers of two and zeros of either sign: ties, carries and exact results.
Vector powers(MmaKind kind, const Draw& d) {
  const auto power = [](float x, int exponent) {
    return std::fabs(x) < 0.25f ? std::copysign(0.0f, x) : std::copysign(std::ldexp(1.0f, exponent), x);
  };
  const float width = kind == MmaKind::f16 ? 4 : 8;
  Vector v{};
  for (int i = 0; i < kLength; ++i) {
    v.a[i] = power(d.a(i), d.exponent_a(i, width));
    v.b[i] = power(d.b(i), d.exponent_b(i, width));
  }
  v.c = power(d.c(), d.exponent_c(2 * width)) * (1 + 0x1p-23f);
  return v;
}

const MmaModel& model_of(MmaKind kind, int sm) {
  const bool hopper = sm >= 90;
  if (kind == MmaKind::bf16) return hopper ? reference::kHopperBf16 : reference::kAmpereBf16;
  if (kind == MmaKind::f16) return hopper ? reference::kHopperF16 : reference::kAmpereF16;
  return hopper ? reference::kHopperTf32 : reference::kAmpereTf32;
}

std::string hex(float x) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(8) << std::bit_cast<std::uint32_t>(x);
  return text.str();
}

class MmaModelOnDevice : public kernels::runtime::GpuTest {
 protected:
  void compare(MmaKind kind, std::string_view regime, Bend bend, int seed) {
    const Case draws = parse_id("l2norm/fwd/len=" + std::to_string(kVectors) + ",HK=1,K=" + std::to_string(kDrawn) +
                                "/f32/seed=" + std::to_string(seed));
    const Tensors inputs = make_inputs(draws);
    const auto normal = get(inputs, "x").as<float>();
    const std::int64_t length = kernels::probe::mma_length(kind);
    std::vector<float> a, b, c, d(kVectors);
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const Vector vector = bend(kind, {normal.data() + v * kDrawn});
      for (std::int64_t i = 0; i < length; ++i) {
        a.push_back(to_format(kind, vector.a[static_cast<std::size_t>(i)]));
        b.push_back(to_format(kind, vector.b[static_cast<std::size_t>(i)]));
      }
      c.push_back(vector.c);
    }
    kernels::probe::mma(kind, a.data(), b.data(), c.data(), d.data(), kVectors);

    const MmaModel& model = model_of(kind, kernels::runtime::device_query().device->sm);
    std::int64_t wrong = 0;
    std::ostringstream first;
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const float *row_a = a.data() + v * length, *row_b = b.data() + v * length;
      const float want = reference::mma_dot(model, row_a, row_b, length, c[static_cast<std::size_t>(v)]);
      const float got = d[static_cast<std::size_t>(v)];
      if (std::bit_cast<std::uint32_t>(want) == std::bit_cast<std::uint32_t>(got) || wrong++ >= 4) continue;
      first << "\n  vector " << v << ": device " << hex(got) << " model " << hex(want) << " c "
            << hex(c[static_cast<std::size_t>(v)]) << "\n    a";
      for (std::int64_t i = 0; i < length; ++i) first << ' ' << hex(row_a[i]);
      first << "\n    b";
      for (std::int64_t i = 0; i < length; ++i) first << ' ' << hex(row_b[i]);
    }
    EXPECT_EQ(wrong, 0) << model.name << ", " << regime << ": " << wrong << " of " << kVectors << " differ" << first.str();
  }

  void compare_all(MmaKind kind) {
    const std::pair<std::string_view, Bend> regimes[] = {
        {"plain", plain},         {"spread", spread}, {"cancellation", cancellation},
        {"subnormal", subnormal}, {"large", large},   {"powers", powers}};
    int seed = 0;
    for (const auto& [name, bend] : regimes) compare(kind, name, bend, ++seed);
  }
};

TEST_F(MmaModelOnDevice, EveryBitIsEqualForBf16) { compare_all(MmaKind::bf16); }
TEST_F(MmaModelOnDevice, EveryBitIsEqualForF16) { compare_all(MmaKind::f16); }
TEST_F(MmaModelOnDevice, EveryBitIsEqualForTf32) { compare_all(MmaKind::tf32); }

}  // namespace
}  // namespace deltagauge::validate
