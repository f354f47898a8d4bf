#include "oracle/gdn_decode.h"

namespace deltagauge::oracle {

template void gdn_decode<double>(const Call&, Answer&);
template void gdn_decode<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
