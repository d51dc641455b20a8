/* This client's version: the package's own, as pyproject.toml has it. */
#ifndef PGPERF_VERSION_H
#define PGPERF_VERSION_H

#define CLIENT_VERSION "0.1.0"
#define WIRE_PROTOCOL 3

#endif
