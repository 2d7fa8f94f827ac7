// Package admin is how an operator's commands reach a running gateway: a small
// HTTP interface on a unix socket in the data folder, and on the TLS endpoint
// where machines enrol. Both want the admin token, which stands in a file of
// mode 0600; whoever can read that file may do everything described here.
//
// It is no interface for browsers: a request that names an origin is refused.
package admin
