// Package pool carries sessions between a gateway and its nodes over a few
// long-lived encrypted connections, and stays calm while the control plane
// changes its mind about which nodes there should be.
//
// It knows nothing of what it carries: payloads are bytes. It has no users,
// quotas or business limits, it does not resume a session that lost its
// connection (the owner of the session does), and it is not a promise that no
// session is ever dropped: it promises that every end is signalled at once,
// with a reason.
package pool
