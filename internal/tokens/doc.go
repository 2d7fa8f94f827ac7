// Package tokens turns text into a model's tokens and back: vocabularies and
// chat templates from a GGUF's metadata, encoding, streaming decoding, stop
// strings.
//
// Token ids equal llama.cpp's for the same file, including where a space is
// added in front, which control tokens are read and when a beginning-of-text
// token is put first; testdata/oracle says how that was checked. (One exception
// is deliberate: the pre-tokenizers "tekken" and "gpt-4o" tell upper from lower
// case beyond ASCII, as the models' authors do and llama.cpp does not.) Differences that would change ids silently are refused
// when the vocabulary is loaded: an unknown pre-tokenizer is an error that
// names it.
//
// The contents of chat messages never yield control tokens. A template renders
// text whose bytes are marked by origin (package jinja), and a control token is
// read only where every one of its bytes was written by the template itself.
// The marks do not change how the rest is cut: harmless content gets the ids
// that llama.cpp gives.
//
// A Tokenizer is immutable and safe for concurrent use. All inputs are bounded
// (limits.go). The package needs no engine and no cgo.
package tokens
