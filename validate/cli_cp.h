// deltagauge cp, behind its flags.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "validate/cli.h"

namespace deltagauge::validate::cli {

struct CpArgs : RunArgs {
  std::vector<std::int64_t> degrees;  // empty: 1 2 3 4 8
  std::vector<std::string> tables;    // empty: all
  std::int64_t segment = 128;
};
int cp(const CpArgs& args);

std::vector<std::string> cp_tables();  // what --table takes

}  // namespace deltagauge::validate::cli
