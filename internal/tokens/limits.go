package tokens

import "time"

// Limits, each with the threat it answers.
const (
	// MaxTextBytes bounds one text to encode. Encoding takes well under a
	// microsecond and some 40 bytes of memory per byte; a context of a million
	// tokens fits.
	MaxTextBytes = 4 << 20
	// MaxMessages bounds a conversation, so that a template's loop ends.
	MaxMessages = 4096
	// MaxStops and MaxStopBytes are bounds of the API (OpenAI's for the count):
	// each stop string costs a comparison per byte of the answer.
	MaxStops     = 4
	MaxStopBytes = 1024

	// templateTime bounds one rendering, whatever the template does.
	templateTime = 2 * time.Second

	// Bounds of a vocabulary, against files that claim absurd lengths.
	maxVocab      = 1 << 20
	maxTokenBytes = 4 << 10
	maxMerges     = 2 << 20
)
