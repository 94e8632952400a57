/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/observer.h"

const struct quoit_observer *quoit_observer = NULL;
