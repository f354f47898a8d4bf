// Products of warps and warpgroups. A warp of a warpgroup computes its own 16 rows by itself, so warps may be as far apart
// as the device lets them be.
#include <bit>
#include <cstring>

#include "core/error.h"
#include "kernels/host/block.h"
#include "kernels/host/device.h"
#include "kernels/host/meet.h"

namespace deltagauge::host {
namespace {

constexpr unsigned kAll = 0xffffffffu;

void plain(Format, int m, int n, int k, const float* a, const float* b, float* c) {
  for (int i = 0; i < m; ++i)
    for (int t = 0; t < k; ++t)
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + t] * b[t * n + j];
}
Matmul matmul = plain;

float value(Format format, std::uint32_t bits) {
  if (format == Format::bf16) return std::bit_cast<float>(bits << 16);
  if (format == Format::tf32) return std::bit_cast<float>(bits & ~0x1fffu);
  const std::uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f));
}

int depth(Format format) { return format == Format::tf32 ? 8 : 16; }

// Registers of a lane to its elements of a [16, k], row-major: with group = lane / 4 and t = lane % 4 register r holds row
// group + 8 (r % 2), and columns 2 t, 2 t + 1 (tf32: t) of half r / 2.
void place_a(Format format, const std::uint32_t* registers, int lane, float* a) {
  const int group = lane / 4, t = lane % 4;
  for (int r = 0; r < 4; ++r) {
    const int row = group + 8 * (r % 2);
    if (format == Format::tf32) {
      a[row * 8 + t + 4 * (r / 2)] = value(format, registers[r]);
    } else {
      a[row * 16 + 2 * t + 8 * (r / 2)] = value(format, registers[r] & 0xffff);
      a[row * 16 + 2 * t + 1 + 8 * (r / 2)] = value(format, registers[r] >> 16);
    }
  }
}

// The accumulators of all lanes as [16, n], and back.
struct Accumulators {
  float (*of[32])[4];
  int n;
  template <class Act>
  void each(const Act& act) const {
    for (int lane = 0; lane < 32; ++lane)
      for (int block = 0; block < n / 8; ++block)
        for (int e = 0; e < 4; ++e)
          act(of[lane][block][e], (lane / 4 + 8 * (e / 2)) * n + 8 * block + 2 * (lane % 4) + e % 2);
  }
  void multiply_add(Format format, const float* a, const float* b, bool add) const {
    float d[16 * 128] = {};
    if (add) each([&](const float& x, int at) { d[at] = x; });
    matmul(format, 16, n, depth(format), a, b, d);
    each([&](float& x, int at) { x = d[at]; });
  }
};

// A tile by its descriptor: rows of 128 bytes in the 128-byte swizzle.
struct Tile {
  std::uint32_t start, lead, stride;
  Tile(const char* what, std::uint64_t descriptor)
      : start(static_cast<std::uint32_t>(descriptor & 0x3fff) << 4),
        lead(static_cast<std::uint32_t>(descriptor >> 16 & 0x3fff) << 4),
        stride(static_cast<std::uint32_t>(descriptor >> 32 & 0x3fff) << 4) {
    if (descriptor >> 62 != 1) fail(what, ": expected a descriptor of the 128-byte swizzle, got mode ", descriptor >> 62);
    if ((descriptor >> 49 & 7) != 0) fail(what, ": expected a tile at a multiple of 1024, got another base offset");
  }
  // What stands in a row so many bytes into it; lead is between runs of 128 bytes.
  const char* at(int row, int byte, std::size_t bytes) const {
    const auto r = static_cast<std::uint32_t>(row), b = static_cast<std::uint32_t>(byte);
    const std::uint32_t address = start + b / 128 * lead + r / 8 * stride + r % 8 * 128 + b % 128;
    return shared_pointer(address ^ (address >> 7 & 7) << 4, bytes);
  }
  float element(Format format, int row, int column) const {
    const std::size_t bytes = format == Format::tf32 ? 4 : 2;
    std::uint32_t bits = 0;
    std::memcpy(&bits, at(row, column * static_cast<int>(bytes), bytes), bytes);
    return value(format, bits);
  }
  // Tells that the first `count` rows are read, so many bytes of each.
  void tell(Races& races, unsigned engine, std::uint32_t tick, int count, int bytes) const {
    for (int row = 0; row < count; ++row)
      for (int byte = 0; byte < bytes; byte += 16)
        races.by_engine(now.thread->index, engine, tick, at(row, byte, 16), 16, false, "wgmma");
  }
};

// A product of one warp that has been issued: a is taken at once, b's tile and the accumulators when it is done.
struct Issued {
  Format format;
  Accumulators d;
  float a[16 * 16];
  std::uint64_t b_tile;
  bool b_columns, add;

  void run() {
    const int k = depth(format);
    float b[16 * 128];
    const Tile tile("wgmma b", b_tile);
    for (int t = 0; t < k; ++t)
      for (int j = 0; j < d.n; ++j) b[t * d.n + j] = b_columns ? tile.element(format, t, j) : tile.element(format, j, t);
    d.multiply_add(format, a, b, add);
  }
  // Its reads last from here to the wait.
  void tell(Races& races, unsigned engine, std::uint32_t tick) const {
    constexpr int kDeep = 32;  // bytes of a row, 16 or 8 elements
    const Tile tile("wgmma b", b_tile);
    b_columns ? tile.tell(races, engine, tick, 16, 2 * d.n) : tile.tell(races, engine, tick, d.n, kDeep);
  }
};

void run_all(std::vector<std::function<void()>>& group) {
  for (auto& product : group) product();
  group.clear();
}

}  // namespace

void set_matmul(Matmul other) { matmul = other; }

void mma(Format format, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  struct {
    float (*d)[4];
    const std::uint32_t* a;
    std::uint32_t b[2];
  } mine{&d, a, {b0, b1}};
  meet("mma", kAll, mine, [format](auto* const* of) {
    float left[16 * 16], right[16 * 8];
    Accumulators sums{{}, 8};
    for (int lane = 0; lane < 32; ++lane) {
      const int group = lane / 4, t = lane % 4;
      place_a(format, of[lane]->a, lane, left);
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t bits = of[lane]->b[half];
        if (format == Format::tf32) {
          right[(t + 4 * half) * 8 + group] = value(format, bits);
        } else {
          right[(2 * t + 8 * half) * 8 + group] = value(format, bits & 0xffff);
          right[(2 * t + 1 + 8 * half) * 8 + group] = value(format, bits >> 16);
        }
      }
      sums.of[lane] = of[lane]->d;
    }
    sums.multiply_add(format, left, right, true);
  });
}

void wgmma(const Wgmma& product) {
  const Wgmma* mine = &product;
  meet("wgmma", kAll, mine, [](const Wgmma* const* const* of) {
    const Wgmma& first = **of[0];
    Warp& warp = now.warp();
    if (!warp.fenced) fail("wgmma: expected wgmma.fence between the last wait and a product, got none");
    auto issued = std::make_shared<Issued>();
    *issued = {.format = first.format,
               .d = {{}, first.n},
               .a = {},
               .b_tile = first.b,
               .b_columns = first.b_columns,
               .add = first.add};
    for (int lane = 0; lane < 32; ++lane) {
      const Wgmma& p = **of[lane];
      if (p.b != first.b || p.add != first.add) fail("wgmma: expected one descriptor in a warp");
      issued->d.of[lane] = p.d;
      place_a(p.format, p.a, lane, issued->a);
    }
    if (Races* races = now.block->races.get()) {
      const unsigned engine = races->products_of(now.thread->index / 32);
      issued->tell(*races, engine, warp.ticks.back() = races->next_tick(engine));
    }
    if (options().mode == Mode::early) return issued->run();
    warp.products.back().emplace_back([issued] { issued->run(); });
    if (chance(2))
      for (auto& group : warp.products) run_all(group);
  });
}
void wgmma_fence() {
  int nothing = 0;
  meet("wgmma.fence", kAll, nothing, [](int* const*) { now.warp().fenced = true; });
}
void wgmma_commit() {
  int nothing = 0;
  meet("wgmma.commit_group", kAll, nothing, [](int* const*) {
    now.warp().products.emplace_back();
    now.warp().ticks.push_back(now.warp().ticks.back());
  });
}
void wgmma_wait(int pending) {
  int nothing = 0;
  meet("wgmma.wait_group", kAll, nothing, [pending](int* const*) {
    Warp& warp = now.warp();
    warp.fenced = false;
    while (static_cast<int>(warp.products.size()) - 1 > pending) {
      run_all(warp.products.front());
      warp.products.pop_front();
      const unsigned w = now.thread->index / 32;
      if (Races* races = now.block->races.get())
        for (unsigned i = 0; i < 32; ++i) races->take(32 * w + i, races->products_of(w), warp.ticks.front());
      warp.ticks.pop_front();
    }
  });
}

}  // namespace deltagauge::host
