package swarm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The package decides and does nothing else: no I/O, no clock, no chance that
// nobody seeded, no goroutines, nothing but the standard library.
func TestPackageStaysPure(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	banned := map[string]string{
		"os": "I/O", "io": "I/O", "net": "I/O", "net/http": "I/O", "log": "I/O", "log/slog": "I/O", "context": "pure functions do not wait",
		"math/rand": "chance comes in as a draw", "math/rand/v2": "chance comes in as a draw", "crypto/rand": "chance comes in as a draw",
		"sync": "its owner serialises", "sync/atomic": "its owner serialises", "runtime": "same everywhere", "unsafe": "pure", "C": "pure",
	}
	checked := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		checked++
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range file.Imports {
			path := strings.Trim(imp.Path.Value, `"`)
			if why, no := banned[path]; no {
				t.Errorf("%s imports %s: %s", f.Name(), path, why)
			}
			if strings.Contains(strings.Split(path, "/")[0], ".") || strings.HasPrefix(path, "hecate") {
				t.Errorf("%s imports %s: standard library only", f.Name(), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", f.Name())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Sleep" || n.Sel.Name == "After") {
					t.Errorf("%s uses time.%s: time is an input", f.Name(), n.Sel.Name)
				}
			}
			return true
		})
	}
	if checked < 20 {
		t.Fatalf("only %d files were looked at", checked)
	}
}
