// Package chaos rehearses failures: an upstream that speaks OpenAI's API and
// fails in a way that has a name ([Upstream]), and a language for failures of a
// running swarm, one command a line ([Parse], [Script.Run]).
//
// A script knows neither processes nor HTTP; it acts through [Hands], and who
// implements them decides which processes may be touched. What travels between a
// gateway and its nodes fails in [Links], through which such a gateway connects.
package chaos
