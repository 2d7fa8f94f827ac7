// Package jinja renders the chat templates that model files carry: the part of
// Jinja 2 that they use, with Python's behaviour, in the environment that
// Hugging Face gives them (trim_blocks, lstrip_blocks, tojson without HTML
// escapes, raise_exception, strftime_now, break and continue).
//
// Two things set it apart from a general engine, and are why it exists:
//
// Every string knows which of its bytes came from outside ([Text]). The marks
// survive slicing, stripping, splitting, joining, replacing and tojson, so the
// tokenizer can refuse to read control tokens into what a user wrote, whatever
// the template did with it. Comparisons ignore the marks: a template behaves as
// if they were not there.
//
// A template is hostile input. It reaches no file, no clock and no attribute of
// the host's; its steps, nesting, output and all text it builds on the way are
// bounded ([Limits]), so it ends soon whatever it says.
//
// Not supported, and refused by name when a template is parsed: include, import,
// extends, block, autoescape, recursive loops, and string formatting with %.
package jinja
