// What the shared library offers; everything else in it is hidden.
#pragma once

#define TIMECACHED_EXPORT __attribute__((visibility("default")))
