// Package stage is the language between a gateway and the node that runs one
// stage of a route. It is pure: bytes in, values out.
//
// One data-plane session carries one stage of one answer:
//
//	gateway                                node
//	Open {model, layers, tokens...}  --->  reserves cells, maybe finds kept state
//	                                 <---  Opened {held, cells, ...}  or Error
//	Step {position, tokens|hidden}   --->  computes its layers
//	                                 <---  Hidden {position, rows}    (not the last stage, unless Open said States)
//	                                 <---  Token {position, id}       (the last stage, when asked to sample)
//	                                 <---  Done {position, rows}      (when nothing was asked back)
//	Truncate {position}              --->  forgets positions >= position
//	                                 <---  Done {position}
//	Grow {cells}                     --->  reserves more cells, if there are any
//	                                 <---  Grown {cells}              what it has now: fewer than asked if there were none
//
// A node that does not know Grow says no cells in Opened, and is not asked.
//
// Steps may be sent ahead of the answers; answers come in the order of the
// steps. The gateway ends a stage by closing the session. When a session ends
// without that, the node keeps the stage's state for a while, and an Open with
// the same Session and Layers finds it again.
//
// Opens and errors are JSON, because they are rare and people read them in
// logs; steps and their answers are little-endian binary.
package stage
