// Package demomodel carries the small language model that HECATE brings along,
// so that a fresh machine without internet can answer. It is a demonstration:
// MODEL_CARD.md says what it knows, where its data come from and how often it
// is wrong.
package demomodel

import (
	_ "embed"
)

// Name is the model id under which the demo model is served.
const Name = "hecate-demo"

// Layers is how many layers it has.
const Layers = 12

//go:embed demo-q8_0.gguf
var gguf []byte

//go:embed MODEL_CARD.md
var card string

//go:embed licenses/WordNet-3.0.txt
var wordNetLicense string

// GGUF returns the whole model file (Q8_0, about 2.9 MB). The bytes are shared
// by all callers and must not be changed.
func GGUF() []byte { return gguf }

// Card returns the model card as Markdown.
func Card() string { return card }

// License returns the notice that must go along with copies of the model: part
// of its training text comes from WordNet 3.0.
func License() string { return wordNetLicense }
