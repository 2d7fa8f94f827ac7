package bench

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"hecate/internal/report"
)

const (
	chatPiece = `data: {"choices":[{"delta":{"content":"Once"}}]}` + "\n\n"
	textPiece = `data: {"choices":[{"text":" upon"}]}` + "\n\n"
	opening   = `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	comment   = ": the answer is on its way\n\n"
	finish    = `data: {"choices":[{"delta":{},"finish_reason":"length"}],"hecate":{"rescues":1}}` + "\n\n"
	usage     = `data: {"choices":[],"usage":{"completion_tokens":2},"hecate":{"rescues":2}}` + "\n\n"
	done      = "data: [DONE]\n\n"
	fault     = `data: {"error":{"message":"no way to go on"}}` + "\n\n"
)

func TestRepliesAreRead(t *testing.T) {
	broken := errors.New("reset by peer")
	for _, c := range []struct {
		name, body string
		breaks     error
		flaw       string // a part of it
		text       string
		rescues    int
	}{
		{"whole", opening + chatPiece + comment + textPiece + finish + usage + done, nil, "", "Once upon", 2},
		{"error event", chatPiece + fault, nil, "no way to go on", "Once", 0},
		{"error event and a broken connection", chatPiece + fault, broken, "no way to go on", "Once", 0},
		{"broken connection", chatPiece, broken, "reset by peer", "Once", 0},
		{"no [DONE]", chatPiece + textPiece + finish + usage, nil, "without [DONE]", "Once upon", 2},
		{"a clean end in the middle", chatPiece + done, nil, "without a finish reason", "Once", 0},
		{"too short", chatPiece + finish + strings.Replace(usage, "2}", "1}", 1) + done, nil, "1 tokens, 2 were asked for", "Once", 2},
		{"no JSON", chatPiece + "data: {\n\n", nil, "no JSON", "Once", 0},
		{"nothing", "", nil, "without a finish reason", "", 0},
	} {
		var body io.Reader = strings.NewReader(c.body)
		if c.breaks != nil {
			body = io.MultiReader(body, iotest.ErrReader(c.breaks))
		}
		var r reply
		r.read(body, 2)
		if (c.flaw == "") != (r.flaw == "") || !strings.Contains(r.flaw, c.flaw) {
			t.Errorf("%s: flaw %q, want %q", c.name, r.flaw, c.flaw)
		}
		if r.text != c.text || r.rescues != c.rescues {
			t.Errorf("%s: %q and %d rescues, want %q and %d", c.name, r.text, r.rescues, c.text, c.rescues)
		}
		if n := strings.Count(c.body, "Once") + strings.Count(c.body, " upon"); len(r.at) != n {
			t.Errorf("%s: %d events with text, want %d", c.name, len(r.at), n)
		}
	}
}

func TestWholeAgain(t *testing.T) {
	node := func(id string, pid int, alive bool) report.Node { return report.Node{ID: id, PID: pid, Alive: alive} }
	for _, c := range []struct {
		name string
		st   report.Status
		want bool
	}{
		{"whole", report.Status{State: "healthy", Nodes: []report.Node{node("mini", 7, true), node("desk", 8, true)}}, true},
		{"the old process", report.Status{State: "healthy", Nodes: []report.Node{node("mini", 5, true)}}, false},
		{"another's pid", report.Status{State: "healthy", Nodes: []report.Node{node("mini", 7, true), node("desk", 5, true)}}, true},
		{"dead", report.Status{State: "healthy", Nodes: []report.Node{node("mini", 0, false)}}, false},
		{"degraded", report.Status{State: "degraded", Nodes: []report.Node{node("mini", 7, true)}}, false},
	} {
		if got := wholeAgain(c.st, "mini", 5); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
