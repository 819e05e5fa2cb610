#ifndef CASES_H
#define CASES_H

#include "../common.h"

#define CASE(name) void name(void);
#include "cases.def"
#undef CASE

#endif
