// Package weights keeps model files and moves them between machines, piece by
// piece.
//
//	GGUF file ──Cut──► pieces: header, embedding, shared, each layer, head,
//	                   and the manifest, which knows every tensor's SHA-256
//
//	gateway: Store (whole files) ──┐                     ┌── Cache (pieces)
//	                               ├─ Server ◄── Fetcher ┤
//	neighbour: Cache (pieces) ─────┘     ▲               └── View ──► engine
//	                                   Desk: who takes what from where
//
// A piece is known by the content hash of its model's file and its name; both
// are checked before they touch a file system. What arrives is hashed tensor by
// tensor against the manifest, whose own hash is in the catalogue, so it does
// not matter who sent it. A transfer that was cut goes on where it stopped.
//
// The Desk at the gateway sends a node to a neighbour that has a piece, and lets
// only one node at a time take a piece from the gateway: each byte leaves it
// once. The package decides nothing about who should hold what, and trusts no
// sender.
package weights
