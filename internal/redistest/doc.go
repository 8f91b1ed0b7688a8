// Package redistest runs real Redis servers for tests and benchmarks: a single server,
// a cluster, one with sentinels, one that speaks TLS, and a proxy between client and
// server that fails on demand. All listen on the loopback interface, keep their files
// in temporary directories, and end with the program.
package redistest
