#include "validate/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace deltagauge::validate {
namespace {

constexpr std::int64_t kRows = 40, kWidth = 4;

// Two series of 20 rows of 4; gold is 1 everywhere, the emulator is right but where a test says otherwise.
struct Fixture {
  Problem problem;
  Rows rows{kWidth, kRows, {{0, 20, 2, 0, 0, 0}, {1, 20, 2, 0, 1, 0}}};
  Tensor gold{DType::f64, {kRows, kWidth}}, emulated{DType::f64, {kRows, kWidth}};
  std::vector<double> floor = std::vector<double>(kRows, 0);

  Fixture() { fill(1); }
  void fill(double value) {
    for (std::int64_t i = 0; i < gold.numel(); ++i) {
      gold.store(i, value);
      emulated.store(i, value);
    }
  }
  Budget budget(DType stored = DType::bf16, std::string_view tensor = "o") const {
    return make_budget(problem, tensor, rows, emulated, gold, floor, stored, reference::staging("chunk64.io"));
  }
};

TEST(Budget, IsHalfAnOutputRoundingWhereTheEmulatorIsExact) {
  const Budget b = Fixture().budget();
  for (const double row : b.row) EXPECT_DOUBLE_EQ(row, 0.5 * 0x1p-8 * 2);  // |row| = 2
  for (const double spread : b.spread) EXPECT_DOUBLE_EQ(spread, kWidth);
}

TEST(Budget, LendsAnErrorToEightRowsOnEitherSideOfTheSameSeries) {
  Fixture f;
  f.emulated.set({2 * 10, 1}, 1.25);  // tenth row of the first series
  const Budget b = f.budget();
  const double base = 0x1p-8;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const bool near = row % 2 == 0 && std::abs(row / 2 - 10) <= 8;
    EXPECT_DOUBLE_EQ(b.row[static_cast<std::size_t>(row)], near ? 0.25 + base : base) << row;
  }
}

TEST(Budget, AddsTheFloor) {
  Fixture f;
  f.floor[5] = 3;
  EXPECT_DOUBLE_EQ(f.budget().row[5], 3 + 0x1p-8);
}

TEST(Budget, OfAZeroRowWithAnExactEmulatorIsZero) {
  Fixture f;
  f.fill(0);
  for (const double row : f.budget().row) EXPECT_EQ(row, 0);
}

TEST(Budget, ShrinksTheSpreadWhereOneElementCarriesTheRow) {
  Fixture f;
  f.fill(0);
  for (std::int64_t row = 0; row < kRows; ++row) f.gold.set({row, 2}, 1), f.emulated.set({row, 2}, 1 + 0x1p-7);
  const Budget b = f.budget();
  for (const double spread : b.spread) EXPECT_DOUBLE_EQ(spread, 1);
}

TEST(Budget, CountsTheStepOfSubnormalsForTinyOutputs) {
  Fixture f;
  f.fill(0x1p-20);  // below the normal f16 numbers: one step is 2^-24
  for (const double row : f.budget(DType::f16).row) EXPECT_DOUBLE_EQ(row, 0.5 * 0x1p-25 * 2);
}

TEST(Budget, AllowsFastModeToFlushSubnormals) {
  Fixture f;
  f.fill(0x1p-130);
  f.problem.math = MathMode::fast;
  for (const double row : f.budget(DType::f32).row) EXPECT_DOUBLE_EQ(row, 0.5 * 0x1p-126 * 2);
}

TEST(Budget, OfAStateRowIsItsShareOfTheLargestErrorOfAllRowsOfTheHead) {
  Fixture f;
  for (std::int64_t j = 0; j < kWidth; ++j) f.gold.set({0, j}, 8), f.emulated.set({0, j}, 8);  // |row| = 16, others 2
  f.emulated.set({38, 1}, 1.25);  // the last row of the first series
  const Budget b = f.budget(DType::f32, "final_state");
  const double base = 0.5 * 0x1p-8;  // of the operands, which are bf16, not of the stored f32
  EXPECT_DOUBLE_EQ(b.row[0], 0.25 / 2 * 16 + base * 16);
  EXPECT_DOUBLE_EQ(b.row[2], 0.25 + base * 2);
  EXPECT_DOUBLE_EQ(b.row[1], base * 2);  // the other head
}

TEST(Budget, OfAStateRowOfZerosIsZero) {
  Fixture f;
  f.emulated.set({38, 1}, 1.25);
  for (std::int64_t j = 0; j < kWidth; ++j) f.gold.set({0, j}, 0), f.emulated.set({0, j}, 0);
  EXPECT_EQ(f.budget(DType::f32, "final_state").row[0], 0);
}

TEST(Budget, EarnsNothingFromAnEmulatorThatOverflows) {
  Fixture f;
  f.emulated.set({6, 0}, std::numeric_limits<double>::infinity());
  f.emulated.set({9, 0}, std::numeric_limits<double>::quiet_NaN());
  for (const double row : f.budget().row) EXPECT_DOUBLE_EQ(row, 0x1p-8);
}

TEST(Budget, CountsNoErrorWhereTheRightValueIsBeyondTheFormatToo) {
  Fixture f;
  f.gold.set({6, 0}, 88388), f.emulated.set({6, 0}, std::numeric_limits<double>::infinity());
  f.emulated.set({6, 1}, 1.25);
  EXPECT_GE(f.budget(DType::f16).row[4], 0.25);  // the row still lends what it lost elsewhere
}

TEST(Budget, EarnsNothingFromAnUnstableSolver) {
  for (const auto& [declared, used] : {std::pair{reference::Solver::doubling16_f16, reference::Solver::fs32},
                                       {reference::Solver::doubling16_bf16, reference::Solver::fs32},
                                       {reference::Solver::doubling_f32, reference::Solver::fs32},
                                       {reference::Solver::block16, reference::Solver::block16},
                                       {reference::Solver::halves32_tf32, reference::Solver::halves32_tf32},
                                       {reference::Solver::fs64, reference::Solver::fs64}}) {
    reference::Staging staging = reference::staging("chunk64.io");
    staging.solver = declared;
    EXPECT_EQ(budget_staging(staging).solver, used);
  }
}

}  // namespace
}  // namespace deltagauge::validate
