package gateway

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
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
	requests *rate.Limiter // nil: no limit
	tokens   *rate.Limiter // nil: no limit; may be overdrawn, by the length of answers
	running  int
}

const tooMany = "key_limit"

// take counts a request that generates. The returned function gives its place
// back; a refusal says when to come again.
func (a *allowances) take(k *keys.Record, now time.Time) (done func(), refusal *openai.Error) {
	if !k.Limited() {
		return func() {}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.of(k)
	if k.Concurrent > 0 && mine.running >= k.Concurrent {
		return nil, openai.Overloaded(tooMany, fmt.Sprintf("This API key has %d requests running, as many as it may.", mine.running), time.Second)
	}
	if mine.tokens != nil {
		if wait := untilThere(mine.tokens, 1, now); wait > 0 {
			return nil, openai.Overloaded(tooMany, fmt.Sprintf("This API key has used up its %d tokens per minute.", k.TokensPerMinute), wait)
		}
	}
	if mine.requests != nil && !mine.requests.AllowN(now, 1) {
		return nil, openai.Overloaded(tooMany, fmt.Sprintf("This API key has used up its %d requests per minute.", k.RequestsPerMinute), untilThere(mine.requests, 1, now))
	}
	mine.running++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		mine.running--
	}, nil
}

// untilThere is how long until a limiter holds so many.
func untilThere(l *rate.Limiter, want float64, now time.Time) time.Duration {
	missing := want - l.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(l.Limit()) * float64(time.Second)))
}

// spend takes what an answer has cost. It is known only afterwards, so a key may
// overdraw its minute by what runs at once; then it waits for longer.
func (a *allowances) spend(k *keys.Record, tokens int, now time.Time) {
	if k.TokensPerMinute == 0 || tokens <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.of(k).tokens
	for left := tokens; left > 0; left -= l.Burst() {
		l.ReserveN(now, min(left, l.Burst()))
	}
}

// head tells a client what it has left, in OpenAI's headers.
func (a *allowances) head(k *keys.Record, h http.Header, now time.Time) {
	if k.RequestsPerMinute == 0 && k.TokensPerMinute == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.of(k)
	for what, l := range map[string]*rate.Limiter{"requests": mine.requests, "tokens": mine.tokens} {
		if l == nil {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(l.Burst()))
		h.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(max(0, int(l.TokensAt(now)))))
		h.Set("X-Ratelimit-Reset-"+what, resetIn(untilThere(l, float64(l.Burst()), now)))
	}
}

// resetIn words a time as OpenAI does: 120ms, 1s, 6m0s.
func resetIn(d time.Duration) string {
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return d.Round(time.Second).String()
}

// of finds a key's allowance. A key's limits never change: another key is made.
func (a *allowances) of(k *keys.Record) *allowance {
	if a.byKey == nil {
		a.byKey = map[string]*allowance{}
	}
	mine := a.byKey[k.ID]
	if mine == nil {
		mine = &allowance{requests: perMinute(k.RequestsPerMinute), tokens: perMinute(k.TokensPerMinute)}
		a.byKey[k.ID] = mine
	}
	return mine
}

func perMinute(n int) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/time.Minute.Seconds()), n)
}

// generates says which requests count against a key's limits.
func generates(r *http.Request) bool { return r.Method == http.MethodPost }

// bound is the key of a request, and what it is held to. Nil: no keys are asked for.
type bound struct {
	record *keys.Record
	of     *allowances
}

type boundKey struct{}

func withKey(ctx context.Context, b *bound) context.Context {
	return context.WithValue(ctx, boundKey{}, b)
}

func keyOf(ctx context.Context) *bound {
	b, _ := ctx.Value(boundKey{}).(*bound)
	return b
}

// names says that the key is for certain models only.
func (b *bound) names() bool { return b != nil && len(b.record.Models) > 0 }

// mayAsk refuses a model that the key is not for, as if it did not exist.
func (b *bound) mayAsk(model string) *openai.Error {
	if b != nil && !b.record.Allows(model) {
		e := openai.NotFound(model)
		e.Message = fmt.Sprintf("The model %q does not exist, or this API key is not for it. GET /v1/models lists those that it is for.", model)
		return e
	}
	return nil
}

// spend takes what an answer has cost.
func (b *bound) spend(tokens int) {
	if b != nil {
		b.of.spend(b.record, tokens, time.Now())
	}
}
