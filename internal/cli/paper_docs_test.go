package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Blocks of ```console in these documents are what the commands in them print;
// charts that a command draws are compared too. After a change that means to
// change them: go test -tags noengine ./internal/cli -run Docs -rewrite-transcripts.
//
// Simulations are chaotic: processors that fuse multiplications and additions
// round otherwise and arrive at other last digits, so this runs on one kind.
func TestDocsShowWhatCommandsPrint(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the numbers in the documents are from amd64")
	}
	fromTop(t)
	for _, file := range []string{"docs/simulator.md", "docs/tuning.md"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := rerun(t, string(want))
			if *rewriteTranscripts {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// rerun writes a document again with its console blocks as they come out now.
func rerun(t *testing.T, doc string) string {
	t.Helper()
	var b strings.Builder
	inBlock, commands := false, 0
	for line := range strings.Lines(doc) {
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = line == "```console\n"
			b.WriteString(line)
		case inBlock && strings.HasPrefix(line, "$ "):
			commands++
			b.WriteString(line)
			b.WriteString(printed(t, strings.Fields(line[2:])))
		case !inBlock:
			b.WriteString(line)
		}
	}
	if commands == 0 {
		t.Fatal("no commands in the document")
	}
	return b.String()
}

// printed is what a command of a document prints. The chart it draws goes
// elsewhere and must be the one that is there.
func printed(t *testing.T, args []string) string {
	t.Helper()
	chart := ""
	if i := slices.Index(args, "--svg"); i >= 0 && !*rewriteTranscripts {
		chart = args[i+1]
		args[i+1] = filepath.Join(t.TempDir(), "chart.svg")
		defer func() {
			got, _ := os.ReadFile(args[i+1])
			want, err := os.ReadFile(chart)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s is not what %q draws (%v)", chart, args, err)
			}
		}()
	}
	o := command(t, "", args...)
	if o.code != 0 {
		t.Errorf("%q: exit status %d: %s", args, o.code, o.err)
	}
	return o.out
}
