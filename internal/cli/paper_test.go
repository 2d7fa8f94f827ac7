package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/cli"
)

var rewriteTranscripts = flag.Bool("rewrite-transcripts", false, "write the transcripts in testdata/transcripts anew")

// outcome is what a command did.
type outcome struct {
	code     int
	out, err string
}

// command runs hecate or hecate-node in this process, from the top of the
// repository.
func command(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, err bytes.Buffer
	main := cli.Main
	if args[0] == "hecate-node" {
		main = cli.NodeMain
	}
	code := main(args[0], args[1:], strings.NewReader(stdin), &out, &err)
	return outcome{code, out.String(), err.String()}
}

// fromTop makes paths of commands begin at the top of the repository.
func fromTop(t *testing.T) { t.Chdir(filepath.Join("..", "..")) }

// refused demands what every mistake gets: exit status 2, nothing on standard
// output, one line on standard error that names the culprit.
func refused(t *testing.T, o outcome, culprit string) {
	t.Helper()
	switch {
	case o.code != 2:
		t.Errorf("exit status %d, want 2", o.code)
	case o.out != "":
		t.Errorf("standard output: %q, want nothing", o.out)
	case strings.Count(o.err, "\n") != 1 || !strings.HasSuffix(o.err, "\n"):
		t.Errorf("standard error: %q, want one line", o.err)
	case !strings.Contains(o.err, culprit):
		t.Errorf("standard error: %q, want it to name %q", o.err, culprit)
	}
}

// Every file in testdata/transcripts is a session at a prompt: commands after
// "$ ", what they print, and their exit status when it is not 0. Regenerate with
// go test -tags noengine ./internal/cli -run Transcripts -rewrite-transcripts.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for i := range files {
		files[i], _ = filepath.Abs(files[i])
	}
	fromTop(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
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

// replay runs the commands of a transcript and writes it again.
func replay(t *testing.T, transcript string) string {
	var b strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "# "):
			b.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			o := command(t, "", strings.Fields(line[2:])...)
			fmt.Fprintf(&b, "%s%s", line, o.out)
			if o.err != "" {
				fmt.Fprintf(&b, "[standard error] %s", o.err)
			}
			if o.code != 0 {
				fmt.Fprintf(&b, "[exit status %d]\n", o.code)
			}
			b.WriteString("\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
