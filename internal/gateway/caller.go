package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
)

// priorityHeader lets a client stand back: -3 (batch work) to 0. To go before
// others is not the client's to say.
const priorityHeader = "X-Hecate-Priority"

// callerOf says whose turn a request is. The key itself is not kept.
func callerOf(r *http.Request) (answer.Caller, *openai.Error) {
	var c answer.Caller
	if key := bearerOf(r.Header.Get("Authorization")); key != "" {
		sum := sha256.Sum256([]byte(key))
		c.Key = hex.EncodeToString(sum[:8])
	}
	text := r.Header.Get(priorityHeader)
	if text == "" {
		return c, nil
	}
	p, err := strconv.Atoi(text)
	if err != nil || p < -admission.MostPriority || p > 0 {
		return c, openai.BadRequest(priorityHeader, "invalid_value", "'%s' is %q, must be a whole number from %d to 0.", priorityHeader, text, -admission.MostPriority)
	}
	c.Priority = p
	return c, nil
}
