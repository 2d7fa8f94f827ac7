// Package poolbench measures the data plane beside what one would use otherwise: bare
// crypto/tls, yamux over TLS, and a gRPC bidirectional stream over TLS. All run in
// this process over loopback TCP with the same mutual TLS 1.3 certificates, in
// turns within one run, because machines and moments differ: what counts are the
// ratios.
//
// Messages of a channel all have one size, so bare TLS needs no framing at all: it
// is the most that the machine can give, not a transport that one could use for many sessions.
package poolbench
