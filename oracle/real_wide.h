// Boost.Multiprecision's types for the oracle: Quad (113 bits) and Oct (237 bits). Header-only, slow to compile: included by
// wide.cc and tests alone.
#pragma once
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace deltagauge::oracle {

using Quad = boost::multiprecision::cpp_bin_float_quad;
using Oct = boost::multiprecision::cpp_bin_float_oct;

}  // namespace deltagauge::oracle
