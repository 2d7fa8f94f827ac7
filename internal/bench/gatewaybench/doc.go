// Package gatewaybench measures what a gateway costs: `hecate serve` in front of
// one engine, beside nginx and HAProxy where they are installed, and beside a bare
// httputil.ReverseProxy, all as processes of their own, in front of the same fake
// upstream, in turns. What is compared is the processor time per request by each
// process's own account: unlike throughput it hardly depends on what else the
// machine does, though caches and clock rates remain.
package gatewaybench
