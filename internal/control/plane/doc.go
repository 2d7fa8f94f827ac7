// Package plane wires the control plane for the two kinds of process: a
// Gateway (authority, embedded or external NATS, enrolment, membership,
// planning) and a Node (enrolment, reports, commands, the plan).
package plane
