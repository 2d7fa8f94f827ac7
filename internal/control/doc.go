// Package control is the swarm's control plane: who is in the swarm, which
// models it serves, which plan holds now, and who is alive.
//
// It is slow and deterministic on purpose. It decides what the data plane
// should become; it never stands in the way of a running session.
//
//	NodeRecord, ModelRecord --> Reconciler --> PlanDocument --> nodes (Reporter), gateways
//	Health (each second)    --> Membership --> States, Events --> gateways (routes, pool map)
//
// Everything durable lives in a Store (five buckets), everything transient
// goes over a Bus (subjects below hecate.v1). Both are small interfaces: the
// subpackage natsbus implements them on NATS with JetStream, embedded or
// external; controltest implements them in memory. Subpackage identity is the
// certificate authority and the TLS configurations, enrol is how a machine
// becomes a node, and plane wires all of it for the two kinds of process.
//
// Readers are level-triggered: they are given the newest value, never a
// sequence of messages on which something depends. Nothing here is lost when
// a message is lost.
//
// What this package refuses to do: it opens no data-plane connection, moves
// no weights, and answers no request of a user.
package control
