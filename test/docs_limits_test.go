package test

import (
	"os"
	"regexp"
	"testing"
)

// TestLimitsNameRealConstants: each constant that docs/limits.md names stands
// in the file that it names.
func TestLimitsNameRealConstants(t *testing.T) {
	doc, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(\\w+)` in `([\\w/]+\\.go)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) < 40 {
		t.Fatalf("only %d constants were found in the document", len(named))
	}
	for _, n := range named {
		source, err := os.ReadFile("../" + n[2])
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`\b` + n[1] + `\b`).Match(source) {
			t.Errorf("%s has no %s", n[2], n[1])
		}
	}
}

// TestTheReadmeNamesEveryDocument in docs/.
func TestTheReadmeNamesEveryDocument(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if regexp.MustCompile(`\.md$`).MatchString(e.Name()) && !regexp.MustCompile(`\(docs/`+regexp.QuoteMeta(e.Name())+`\)`).Match(readme) {
			t.Errorf("README.md has no link to docs/%s", e.Name())
		}
	}
}
