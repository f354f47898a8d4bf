// Ranks as processes: four of them under mpirun, on the CPU reference.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace deltagauge::validate::cp {
namespace {

struct Ended {
  int status;
  std::string output;
};

Ended mpirun(int ranks, const std::string& arguments) {
  // Open MPI wants to be asked before it runs as root, or with more ranks than cores.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  const std::string line = std::string(DELTAGAUGE_MPIEXEC) + " -n " + std::to_string(ranks) + " " + DELTAGAUGE_CP_RANK +
                           " " + arguments + " 2>&1";
  Ended ended{-1, {}};
  FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return ended;
  std::array<char, 4096> buffer;
  while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ended.output.append(buffer.data(), read);
  ended.status = WEXITSTATUS(pclose(pipe));
  return ended;
}

TEST(Mpi, four_processes_give_the_bits_of_four_threads) {
  for (const char* table : {"zigzag", "scattered"}) {
    const Ended ended =
        mpirun(4, "gdn/fwd/len=37+351+40,HK=1,HV=2,K=64,V=32/bf16/gate=mild/h0=normal=1/seed=4 " + std::string(table));
    EXPECT_EQ(ended.status, 0) << ended.output;
    for (const char* name : {"o", "final_state"})
      EXPECT_NE(ended.output.find(std::string(name) + ": the same bits as 4 threads give"), std::string::npos)
          << ended.output;
  }
}

TEST(Mpi, a_bad_case_ends_every_process_with_its_reason) {
  const Ended ended = mpirun(2, "gdn/fwd/len=37,HK=1,HV=1,K=16,V=16/f32/seed=4");
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.output.find("io: expected bf16 or f16, got f32"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace deltagauge::validate::cp
