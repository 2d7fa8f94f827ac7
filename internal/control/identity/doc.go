// Package identity is who is who in a swarm: one certificate authority per
// swarm, short-lived certificates for its nodes and gateways, and the TLS
// configurations that accept these and nothing else.
//
// An identity stands in the certificate as a URI, hecate://SWARM/node/NAME or
// hecate://SWARM/gateway/NAME, where SWARM is derived from the authority's
// public key: a certificate of another swarm can not even be mistaken. A node
// is its key: certificates come and go, the key stays.
//
// Private keys are written to files of mode 0600, read only from such, and
// never logged.
package identity
