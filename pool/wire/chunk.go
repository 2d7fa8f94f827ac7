package wire

// NextChunk splits the front off a message: the payload of the next DATA frame, its flags,
// and what remains. An empty message is one empty chunk.
func NextChunk(message []byte) (chunk, rest []byte, flags Flags) {
	if len(message) <= MaxPayload {
		return message, nil, 0
	}
	return message[:MaxPayload], message[MaxPayload:], FlagMore
}

// Chunks returns how many DATA frames a message of n bytes takes.
func Chunks(n int) int { return max(1, (n+MaxPayload-1)/MaxPayload) }
