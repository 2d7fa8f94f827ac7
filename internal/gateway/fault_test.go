package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
	"hecate/swarm"
)

// What a client is told: status, when to come again, and the reason in body and
// header, the same in both.
func TestFaults(t *testing.T) {
	refused := func(r admission.Reason, retry time.Duration, because error) error {
		return fmt.Errorf("answer x: %w", &admission.Refusal{Reason: r, Model: "m", Ahead: 7, Retry: retry, Because: because})
	}
	noRoute := fmt.Errorf("copy 1: n7 is dead: %w", swarm.ErrNoRoute)
	for _, c := range []struct {
		name   string
		err    error
		status int
		code   string
		retry  string
		reason string
		says   string
	}{
		{"queue full", refused(admission.QueueFull, 4200*time.Millisecond, nil), 429, "queue_full", "5", "queue_full", "7 requests wait"},
		{"too late", refused(admission.WaitTooLong, 11*time.Second, nil), 429, "wait_too_long", "11", "wait_too_long", "in time"},
		{"no room", refused(admission.NoRoom, time.Second, nil), 429, "no_room", "1", "no_room", "waited"},
		{"not ready", refused(admission.NotReady, 23*time.Second, noRoute), 503, "not_ready", "23", "not_ready", "n7 is dead"},
		{"not ready, after a rescue", fmt.Errorf("%w: %w", answer.ErrNoWayOn, refused(admission.NotReady, 3*time.Second, noRoute)), 503, "not_ready", "3", "not_ready", "n7 is dead"},
		{"too large", refused(admission.TooLarge, 0, noRoute), 400, "too_large", "", "too_large", "has room"},
		{"no way on", fmt.Errorf("%w: %w", answer.ErrNoWayOn, swarm.ErrUnrecoverable), 503, "no_way_on", "5", "no_way_on", "gone"},
		{"no route", noRoute, 503, "not_ready", "2", "not_ready", "n7 is dead"},
		{"query of death", answer.ErrQueryOfDeath, 500, "query_of_death", "", "", "refused for a while"},
		{"a node's no", &stage.Error{Code: stage.CodeNotFinite, Message: "NaN"}, 500, string(stage.CodeNotFinite), "", "", "NaN"},
		{"known", openai.NotFound("x"), 404, "model_not_found", "", "", "x"},
		{"else", errors.New("the roof is on fire"), 500, "internal_error", "", "", "roof"},
	} {
		w := httptest.NewRecorder()
		faultOf(c.err).Write(w)
		body := w.Body.String()
		if w.Code != c.status || w.Header().Get("Retry-After") != c.retry || w.Header().Get("X-Hecate-Reason") != c.reason {
			t.Errorf("%s: %d, Retry-After %q, reason %q; want %d, %q, %q", c.name, w.Code, w.Header().Get("Retry-After"), w.Header().Get("X-Hecate-Reason"), c.status, c.retry, c.reason)
		}
		if !strings.Contains(body, fmt.Sprintf(`"code":%q`, c.code)) || !strings.Contains(body, c.says) {
			t.Errorf("%s: %s; want code %s and %q", c.name, body, c.code, c.says)
		}
	}
	for _, r := range admission.Reasons() {
		if f := faultOf(&admission.Refusal{Reason: r}); f.Reason != string(r) || f.Status == http.StatusInternalServerError {
			t.Errorf("%s: status %d, reason %q", r, f.Status, f.Reason)
		}
	}
}

func TestCallers(t *testing.T) {
	for _, c := range []struct {
		key, priority string
		want          int
		named, bad    bool
	}{
		{"", "", 0, false, false}, {"Bearer secret", "-2", -2, true, false}, {"bearer  secret", "", 0, true, false}, {"Bearer ", "", 0, false, false}, {"Basic secret", "0", 0, false, false},
		{"", "1", 0, false, true}, {"", "-4", 0, false, true}, {"", "high", 0, false, true},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", c.key)
		r.Header.Set(priorityHeader, c.priority)
		got, fault := callerOf(r)
		if (fault != nil) != c.bad || got.Priority != c.want || (got.Key != "") != c.named || strings.Contains(got.Key, "secret") {
			t.Errorf("%+v: %+v, %v", c, got, fault)
		}
	}
}
