// Package natsbus puts the control plane on NATS: the store on JetStream
// key-value buckets, the bus on subjects, and an embedded server for swarms
// that have no NATS of their own.
package natsbus
