// Package measure is what benchmarks share: order statistics, marks that a value
// must reach, a check of the machine's own noise, and the table that says so.
//
// Values of one run are compared with one another, never with those of another
// run: machines and moments differ. A benchmark therefore measures its
// alternatives in turns and takes the median over the rounds of each round's
// ratio, so that whatever disturbs one round disturbs both sides of it.
package measure
