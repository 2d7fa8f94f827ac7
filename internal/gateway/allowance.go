package gateway

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"hecate/internal/control/keys"
	"hecate/internal/gateway/openai"
)

// allowances hold each API key to its own limits. They count in this gateway:
// where several share a swarm, each grants the whole.
type allowances struct {
	mu    sync.Mutex
	byKey map[string]*allowance // by the key's id; one for each limited key that was used
}

// allowance is what one key has left.
type allowance struct {
	rate    *rate.Limiter // nil: no limit
	running int
}

const tooMany = "key_limit"

// take counts a request that generates. The returned function gives its place
// back; a refusal says when to come again.
func (a *allowances) take(k *keys.Record, now time.Time) (done func(), refusal *openai.Error) {
	if k.RequestsPerMinute == 0 && k.Concurrent == 0 {
		return func() {}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.of(k)
	if k.Concurrent > 0 && mine.running >= k.Concurrent {
		return nil, openai.Overloaded(tooMany, "This API key has as many requests running as it may.", time.Second)
	}
	if mine.rate != nil && !mine.rate.AllowN(now, 1) {
		wait := time.Duration((1 - mine.rate.TokensAt(now)) / float64(mine.rate.Limit()) * float64(time.Second))
		return nil, openai.Overloaded(tooMany, "This API key has used up its requests for the moment.", wait)
	}
	mine.running++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		mine.running--
	}, nil
}

// of finds a key's allowance. A key's limits never change: another key is made.
func (a *allowances) of(k *keys.Record) *allowance {
	if a.byKey == nil {
		a.byKey = map[string]*allowance{}
	}
	mine := a.byKey[k.ID]
	if mine == nil {
		mine = &allowance{}
		if k.RequestsPerMinute > 0 {
			mine.rate = rate.NewLimiter(rate.Limit(float64(k.RequestsPerMinute)/time.Minute.Seconds()), k.RequestsPerMinute)
		}
		a.byKey[k.ID] = mine
	}
	return mine
}

// generates says which requests count against a key's limits.
func generates(r *http.Request) bool { return r.Method == http.MethodPost }
