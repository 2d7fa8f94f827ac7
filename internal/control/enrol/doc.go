// Package enrol is how a machine becomes a node, and stays one.
//
//	token  --Enrol--> certificate   once: the token's secret and a new key
//	key    --Renew--> certificate   as often as needed, also long after expiry
//	certificate --Attach--> incarnation and addresses   at each start
//
// The three are HTTPS requests to a gateway. The first is pinned to the
// authority's fingerprint in the token; for the second the signature of the
// enrolled key is the credential; the third is mutual TLS.
package enrol
