// Package sampling turns a model's logits into the next token.
//
// A choice is a pure function of (parameters, all tokens so far, logits,
// position): a session that is resumed elsewhere from its tokens draws exactly
// what it would have drawn undisturbed. Randomness is Gumbel noise computed from
// a counter (seed, position, token) instead of drawn from a generator with
// state, so logits that differ in their last bits still give the same token
// except where two scores nearly tie.
//
// The chain, in llama.cpp's order:
//
//	logit bias -> repetition penalty -> frequency and presence penalty
//	-> top-k -> top-p -> min-p -> temperature -> Gumbel maximum
//
// The filters look at the distribution at temperature 1, so which tokens can
// occur does not depend on the temperature. Temperature 0 takes the largest
// logit after bias and penalties. Equal logits are ordered by smaller token id,
// everywhere.
//
// Reported log-probabilities are the log-softmax of the raw logits: before
// bias, penalties, filters and temperature. They say what the model thought,
// whatever the request made of it.
//
// The package does no I/O, starts no goroutine and needs no engine.
package sampling
