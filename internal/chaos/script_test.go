package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s, err := Parse("drill", strings.NewReader(`
# a comment
kill laptop
flap  desk every 3s for 30s   # to the end of the line
arm at=20 stage=1 action=drop model=m
arm at=40 stage=1 rescues=1 also
delay desk 200ms jitter 50ms
partition desk
await node laptop dead within 5s
await healthy within 1m
expect rescues 2
wait 0s
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []command{
		{line: 3, text: "kill laptop", verb: "kill", node: "laptop"},
		{line: 4, text: "flap desk every 3s for 30s", verb: "flap", node: "desk", every: 3 * time.Second, length: 30 * time.Second},
		{line: 5, text: "arm at=20 stage=1 action=drop model=m", verb: "arm", order: Order{Model: "m", Stage: 1, AtToken: 20, Action: "drop"}},
		{line: 6, text: "arm at=40 stage=1 rescues=1 also", verb: "arm", order: Order{Stage: 1, AtToken: 40, Action: "kill", Rescues: 1, Also: true}},
		{line: 7, text: "delay desk 200ms jitter 50ms", verb: "delay", node: "desk", link: "delay 200ms jitter 50ms"},
		{line: 8, text: "partition desk", verb: "partition", node: "desk", link: "partition"},
		{line: 9, text: "await node laptop dead within 5s", verb: "await", within: 5 * time.Second, wanted: condition{subject: "node", node: "laptop", word: "dead"}},
		{line: 10, text: "await healthy within 1m", verb: "await", within: time.Minute, wanted: condition{subject: "state", word: "healthy"}},
		{line: 11, text: "expect rescues 2", verb: "expect", wanted: condition{subject: "rescues", count: 2}},
		{line: 12, text: "wait 0s", verb: "wait"},
	}
	if len(s.commands) != len(want) {
		t.Fatalf("%d commands, want %d", len(s.commands), len(want))
	}
	for i := range want {
		if s.commands[i] != want[i] {
			t.Errorf("%+v\nwant %+v", s.commands[i], want[i])
		}
	}
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	for line, want := range map[string]string{
		"explode laptop":                    "known are kill, stop",
		"kill":                              "want kill NODE",
		"stop a b":                          "want stop NODE",
		"flap a every 3s":                   "want flap NODE every DURATION for DURATION",
		"flap a every 1ms for 1s":           "need at least 100ms",
		"flap a every 3s for 1s":            "one period",
		"delay":                             "want delay NODE",
		"delay a":                           "one is needed",
		"loss a most":                       "invalid syntax",
		"partition a b":                     "takes no more words",
		"arm stage=1 at=1 rescues=x":        `"x" is no number`,
		"arm stage=1":                       "want arm stage=N at=TOKEN",
		"arm stage=x at=1":                  `"x" is no number`,
		"arm stage=-1 at=1":                 `"-1" is no number`,
		"arm stage=1 at=1 action=boom":      `action "boom"`,
		"arm stage=1 at=1 node=a":           `"node=a"`,
		"wait":                              "want wait DURATION",
		"wait 3":                            `"3" is no time`,
		"wait -3s":                          `"-3s" is no time`,
		"wait 48h":                          `"48h" is no time`,
		"expect":                            "a condition is",
		"expect state fine":                 `state "fine"`,
		"expect node a well":                `node a "well"`,
		"expect rescues many":               `"many" is no number`,
		"await healthy":                     "want await CONDITION within DURATION",
		"await within 3s":                   "want await CONDITION within DURATION",
		"await state healthy within always": `"always" is no time`,
	} {
		_, err := Parse("a.drill", strings.NewReader("# first\n"+line+"\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "a.drill:2: "+line+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	_, err := Parse("a.drill", strings.NewReader("kill\nwait 1s\nwait\n"))
	if err == nil || strings.Count(err.Error(), "a.drill:") != 2 {
		t.Errorf("not every fault is said at once: %v", err)
	}
	if _, err := Parse("a.drill", strings.NewReader("# nothing\n")); err == nil {
		t.Error("a script without commands is taken")
	}
}

// The scripts that ship are well-formed.
func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../../examples/drills/*.drill")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(name, bytes.NewReader(b)); err != nil {
			t.Error(err)
		}
	}
}
