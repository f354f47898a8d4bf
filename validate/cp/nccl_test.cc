// A rank on every GPU of the host, through NCCL. The program runs in a process of its own, since NCCL's library may be
// missing.
#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "kernels/runtime/testing.h"

namespace deltagauge::validate::cp {
namespace {

class Nccl : public kernels::runtime::GpuTest {};

TEST_F(Nccl, a_rank_on_every_gpu_gives_the_bits_of_all_ranks_on_one) {
  if (kernels::runtime::device_count() < 2)
    GTEST_SKIP() << "expected at least two GPUs, got " << kernels::runtime::device_count();
  for (const char* table : {"zigzag", "scattered"}) {
    const std::string line = std::string(DELTAGAUGE_CP_NCCL) +
                             " gdn/fwd/len=37+351+40,HK=1,HV=2,K=64,V=64/bf16/gate=mild/h0=normal=1/seed=4 " + table +
                             " 2>&1";
    std::string output;
    std::array<char, 4096> buffer;
    FILE* pipe = popen(line.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), read);
    const int status = WEXITSTATUS(pclose(pipe));
    if (status == 127) GTEST_SKIP() << "the program does not start: " << output;
    EXPECT_EQ(status, 0) << output;
    for (const char* name : {"o", "final_state"})
      EXPECT_NE(output.find(std::string(name) + ": the same bits as "), std::string::npos) << output;
  }
}

}  // namespace
}  // namespace deltagauge::validate::cp
