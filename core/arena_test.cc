#include "core/arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/error.h"

namespace deltagauge {
namespace {

Arena example(Fill fill) {
  Arena arena(fill);
  arena.add_input("x", Tensor(DType::f16, {5}), 2);
  arena.add_output("y", DType::bf16, {3, 2});
  arena.add_workspace("w", 100);
  arena.reset();
  return arena;
}

TEST(Arena, IsCleanBeforeAnyDamage) {
  for (const Fill fill : {Fill::nan, Fill::huge}) {
    const Arena arena = example(fill);
    EXPECT_TRUE(arena.audit().empty());
    EXPECT_EQ(arena.untouched("y"), std::vector<bool>(6, true));
    EXPECT_EQ(arena.offset("x") % Arena::kAlign, 2u);
  }
}

TEST(Arena, KnowsWhichSlotsOfAPaddedPoolWereAdvancedInPlace) {
  for (const Fill fill : {Fill::nan, Fill::huge}) {
    Tensor pool = Tensor::strided(DType::f32, {3, 2, 2}, {7, 2, 1});
    for (std::int64_t slot = 0; slot < 3; ++slot) pool.set({slot, 1, 1}, 5);
    Arena arena(fill);
    arena.add_in_place("S", pool);
    arena.reset();
    EXPECT_EQ(arena.take("S").at({2, 1, 1}), 5);
    EXPECT_TRUE(std::isnan(arena.take("S").load(5)) || arena.take("S").load(5) > 1e29);  // between slots
    EXPECT_EQ(arena.untouched("S"), std::vector<bool>(12, true));
    const float advanced[] = {1, 2, 3};
    arena.put("S", 7, reinterpret_cast<const std::byte*>(advanced), sizeof advanced);  // the end of slot 1, the start of 2
    EXPECT_EQ(arena.take("S").at({1, 1, 1}), 1);
    EXPECT_EQ(arena.take("S").at({2, 0, 1}), 3);
    std::vector<bool> same(12, true);
    for (const std::size_t i : {7, 8, 9}) same[i] = false;
    EXPECT_EQ(arena.untouched("S"), same);
    EXPECT_TRUE(arena.audit().empty());
    arena.image()[arena.offset("S") + 4 * 4] = std::byte{0x55};
    ASSERT_EQ(arena.audit().size(), 1u);
    EXPECT_EQ(arena.audit()[0], "padding of S: 1 bytes changed, the first at byte 16 of 72");
    Tensor other = pool;
    other.set({0, 0, 0}, 8);
    arena.replace("S", other);
    arena.reset();
    EXPECT_EQ(arena.take("S").at({0, 0, 0}), 8);
    EXPECT_THROW(arena.replace("S", Tensor(DType::f32, {3, 2, 2})), Error);
    EXPECT_THROW(arena.replace("T", other), Error);
  }
}

TEST(Arena, ReportsWritesOutsideAndIntoInputs) {
  Arena arena = example(Fill::nan);
  arena.image()[arena.offset("y") + 12] = std::byte{7};  // one past y
  arena.image()[arena.offset("x") + 1] = std::byte{1};
  const auto damage = arena.audit();
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_EQ(damage[0], "input x: 1 bytes changed, the first at byte 1 of 10");
  EXPECT_NE(damage[1].find("guard between y and w: 1 bytes changed, the first at byte 0"), std::string::npos);
}

TEST(Arena, KnowsWhichOutputsWereWritten) {
  Arena arena = example(Fill::huge);
  std::memset(arena.image().data() + arena.offset("y"), 0, 4);
  EXPECT_EQ(arena.untouched("y"), (std::vector<bool>{false, false, true, true, true, true}));
  EXPECT_TRUE(arena.audit().empty());
  arena.reset();
  EXPECT_EQ(arena.untouched("y")[0], true);
}

TEST(Arena, NamesTheTensorWhoseGuardWasReadByItsNanPayload) {
  const Arena arena = example(Fill::nan);
  const Tensor y = arena.take("y");
  EXPECT_TRUE(std::isnan(y.at({0, 0})));
  EXPECT_EQ(y.as<Bf16>()[0].bits & 0x3f, 2);  // y is tensor 2
}

TEST(Arena, RefusesUnknownAndRepeatedNames) {
  Arena arena = example(Fill::nan);
  EXPECT_THROW(arena.take("z"), Error);
  EXPECT_THROW(arena.add_output("y", DType::f32, {1}), Error);
}

}  // namespace
}  // namespace deltagauge
