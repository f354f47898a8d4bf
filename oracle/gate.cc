#include "oracle/gate.h"

namespace deltagauge::oracle {

template void gate<double>(const Call&, Answer&);
template void gate<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
