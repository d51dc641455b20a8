/* The version of this client, equal to that of the package in pyproject.toml. */
#ifndef PGPERF_VERSION_H
#define PGPERF_VERSION_H

#define CLIENT_VERSION "0.1.0"
#define WIRE_PROTOCOL 8

#endif
