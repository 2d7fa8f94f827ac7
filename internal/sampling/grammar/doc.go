// Package grammar decides which tokens may come next when an answer must have a
// shape: JSON of a schema, a call of a tool.
//
// A [Grammar] is data: rules over bytes and control tokens, small enough to
// travel with the parameters of sampling. [Vocabulary.Automaton] turns it into a
// pushdown automaton, and a [Machine] follows one answer through it. A machine's
// state is a function of the tokens generated so far, so that an answer goes on
// elsewhere from its tokens alone.
//
// Two promises hold for every grammar that compiles:
//
//   - whatever the machine let through is the beginning of a text of the
//     grammar, whole UTF-8 characters or not, however it was cut into tokens;
//   - from every state a whole text can be reached within MaxDepth nested rules,
//     so an answer never paints itself into a corner (provided the vocabulary
//     has the single bytes, as all real ones do).
//
// # What a mask costs
//
// The vocabulary is a trie. A state is a few threads, each a node with a stack.
// What a node accepts without leaving its rule does not depend on the stack, so
// it is computed once and kept with the vocabulary (all strings of all schemas
// share it); only tokens that reach beyond the rule, such as a quote with a
// comma, are walked with the stack at hand.
package grammar
