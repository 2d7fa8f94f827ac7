package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hecate/internal/cli"
)

// docCommand is a command line that a document shows, in an indented or fenced
// line of its own.
type docCommand struct {
	file  string // from the top of the repository
	line  int
	text  string // with the lines that continue it
	shown string // what stands below it in the same block, up to the next command
}

func (c docCommand) String() string { return fmt.Sprintf("%s:%d: %s", c.file, c.line, c.text) }

// openings of the lines that are commands to run.
var openings = []string{"bin/hecate ", "hecate ", "curl ", "echo "}

// demoFile stands in for the reader's model.
const demoFile = "../internal/demomodel/demo-q8_0.gguf"

// docCommands are the commands of README.md and docs/*.md, in order.
func docCommands(t *testing.T) []docCommand {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []docCommand
	for _, path := range append([]string{"../README.md"}, files...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, commandsIn(filepath.ToSlash(strings.TrimPrefix(path, "../")), string(b))...)
	}
	return all
}

// commandsIn finds the commands of one document.
func commandsIn(file, doc string) []docCommand {
	var found []docCommand
	lines := strings.Split(doc, "\n")
	fenced := false
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "```") {
			fenced = !fenced
		}
		text, is := commandLine(lines[i], fenced)
		if !is {
			continue
		}
		c := docCommand{file: file, line: i + 1, text: text}
		for unfinished(c.text) && i+1 < len(lines) {
			i++
			c.text = strings.TrimSuffix(c.text, `\`) + "\n" + strings.TrimSpace(lines[i])
		}
		for _, below := range lines[i+1:] {
			_, next := commandLine(below, fenced)
			prose := !fenced && below != "" && !strings.HasPrefix(below, "    ")
			if next || prose || strings.HasPrefix(below, "```") {
				break
			}
			c.shown += below + "\n"
		}
		found = append(found, c)
	}
	return found
}

// commandLine tells whether a line is a command, and which.
func commandLine(line string, fenced bool) (string, bool) {
	text, indented := strings.CutPrefix(line, "    ")
	if !indented && !fenced {
		return "", false
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "$ "), "sudo -u hecate ")
	for _, o := range openings {
		if strings.HasPrefix(text, o) && (o != "echo " || strings.Contains(text, "hecate ")) {
			return text, true
		}
	}
	return "", false
}

// unfinished tells whether a command goes on in the next line.
func unfinished(text string) bool {
	_, open := shellWords(text)
	return open || strings.HasSuffix(text, `\`)
}

// shellWords are the commands of a line as a shell takes them apart: at pipes,
// semicolons and ends of lines, without comments and redirections. open says
// that a quotation was not closed.
func shellWords(text string) (commands [][]string, open bool) {
	var words []string
	var word strings.Builder
	begun, quote := false, rune(0)
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	cut := func() {
		end()
		if i := slices.Index(words, ">"); i >= 0 {
			words = words[:i]
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	comment := false
	for _, r := range text {
		switch {
		case comment:
			comment = r != '\n'
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == '#' && !begun:
			comment = true
		case r == '|' || r == ';' || r == '&':
			cut()
		case r == ' ' || r == '\n':
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	cut()
	return commands, quote != 0
}

// check wants hecate to take each of its command lines within a line of a shell.
func check(t *testing.T, text string) {
	t.Helper()
	commands, open := shellWords(text)
	if open {
		t.Errorf("a quotation is not closed")
	}
	checked := false
	for _, words := range commands {
		name := strings.TrimPrefix(words[0], "bin/")
		checked = checked || name == "curl"
		if name != "hecate" {
			continue
		}
		checked = true
		for i, w := range words {
			if w == "llama.gguf" { // some commands want the file to be there already
				words[i] = demoFile
			}
		}
		if err := cli.Check(words[1:]); err != nil {
			t.Errorf("hecate would refuse it: %v", err)
		}
	}
	if !checked {
		t.Error("no command of hecate was found in it")
	}
}

// TestEveryCommandInTheDocsIsOne: no document names a command or a flag that
// does not exist, nor a value that would be refused.
func TestEveryCommandInTheDocsIsOne(t *testing.T) {
	all := docCommands(t)
	if len(all) < 100 {
		t.Fatalf("only %d commands were found in the documents", len(all))
	}
	for _, c := range all {
		t.Run(fmt.Sprintf("%s:%d", filepath.Base(c.file), c.line), func(t *testing.T) {
			check(t, c.text)
			if t.Failed() {
				t.Log(c)
			}
		})
	}
}

// TestAMistakeInADocumentIsFound: the test above can fail.
func TestAMistakeInADocumentIsFound(t *testing.T) {
	for _, text := range []string{"hecate statsu", "hecate up --copis 2", "hecate chaos arm --stage 1 --at-token x", "hecate node pause"} {
		commands, _ := shellWords(text)
		if cli.Check(commands[0][1:]) == nil {
			t.Errorf("%s: taken", text)
		}
	}
	doc := "text\n\n    $ hecate chat \"a\n    b\" # c\n    said\n\nhecate is no command here\n"
	got := commandsIn("x.md", doc)
	if len(got) != 1 || got[0].line != 3 || got[0].text != "hecate chat \"a\nb\" # c" || got[0].shown != "    said\n\n" {
		t.Errorf("found %+v", got)
	}
}

// explained are the commands whose help shows how they are used.
var explained = []string{"up", "serve", "node run", "chat", "status", "top", "model add", "engine add", "key create", "token create", "chaos", "bench", "completion"}

// TestHelpShowsExamples that hecate would take.
func TestHelpShowsExamples(t *testing.T) {
	for _, command := range explained {
		t.Run(command, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := cli.Main("hecate", append(strings.Fields(command), "--help"), strings.NewReader(""), &out, &errs); code != 0 {
				t.Fatalf("code %d: %s", code, errs.String())
			}
			_, below, found := strings.Cut(out.String(), "Examples:\n")
			below, _, _ = strings.Cut(below, "\n\n")
			lines := 0
			for line := range strings.Lines(below) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "hecate ") || strings.HasPrefix(line, "eval ") {
					lines++
				}
				if strings.HasPrefix(line, "hecate ") {
					check(t, line)
				}
			}
			if !found || lines < 2 {
				t.Errorf("no two examples in\n%s", out.String())
			}
		})
	}
}
