// Package engines lets servers of whole models that somebody else runs take part
// in the swarm: llama.cpp's, Ollama, vLLM, SGLang, another HECATE, anything that
// speaks OpenAI's API. Each model of each engine is a pipeline of one stage, priced
// by swarm's adaptive cost, with swarm's circuit and leases.
//
// A request passes through as it came: the body is scanned for the few fields that
// matter and never written anew, events leave byte for byte as they arrive. What an
// engine does wrong before the first content of an answer is not seen by the client:
// another engine is asked. Afterwards the answer goes on from where it stood where a
// test has proved that the engine can do that; otherwise the client is told by an
// error event, and the connection breaks: no answer ever ends early and cleanly.
//
//	Call      one request, its body held until nobody can want it again
//	Engines   who there is, what they serve, whose turn it is (the owner of all state)
//	attempt   one try at one engine
//	relay     the way of an answer to the client, over all attempts
//
// Lock order: Engines.mu alone; nothing is called with it held.
package engines
