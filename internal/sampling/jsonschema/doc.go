// Package jsonschema turns JSON Schemas into grammars of their values.
//
// Every text of the grammar is JSON that satisfies the schema. The reverse does
// not hold, and need not: properties come in the schema's order, whitespace is
// as people write it, numbers and lists have a bounded length, and where a
// schema leaves open whether more properties or items may follow, none do.
//
// What a schema says beyond the keywords known here is refused by name, never
// passed over, except for what only describes: title, description and their
// like (see annotations).
package jsonschema
