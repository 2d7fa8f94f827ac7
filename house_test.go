package hecate

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms says what each room may import of ours, as in ARCHITECTURE.md. A name
// stands for the folder and all below it; a room may always import its own
// inner rooms.
var rooms = map[string][]string{
	"cmd":                        {"internal/cli"},
	"internal/cli":               {"internal", "swarm", "pool"},
	"internal/bench":             {"internal", "swarm", "pool"},
	"internal/chaos":             {"pool/faultproxy"},
	"internal/gateway":           {"internal/control", "internal/stage", "internal/sampling", "internal/tokens", "internal/web", "internal/metrics", "internal/event", "internal/report", "pool", "swarm"},
	"internal/gateway/answer":    {"internal/stage", "internal/sampling", "swarm"},
	"internal/gateway/admission": {"internal/gateway/answer", "internal/gateway/dispatch", "internal/stage", "swarm"},
	"internal/gateway/dispatch":  {"internal/gateway/answer", "internal/control", "internal/stage", "swarm"},
	"internal/gateway/live":      {"internal/report"},
	"internal/gateway/engines":   {"internal/control", "internal/gateway/openai", "swarm"},
	"internal/gateway/openai":    {"internal/sampling"},
	"internal/node":              {"internal/control", "internal/demomodel", "internal/engine", "internal/weights", "internal/sampling", "internal/stage", "internal/tokens", "pool", "swarm"},
	"internal/stage":             {"internal/sampling"},
	"internal/weights":           {"internal/control", "internal/gguf", "swarm"},
	"internal/control":           {"swarm"},
	"internal/engine":            {"internal/gguf"},
	"internal/tokens":            {"internal/gguf"},
	"internal/sampling":          {},
	"internal/gguf":              {},
	"internal/demomodel":         {},
	"internal/metrics":           {"internal/report", "internal/event", "pool"},
	"internal/web":               {},
	"internal/event":             {},
	"internal/top":               {"internal/report", "swarm"},
	"internal/trace":             {"internal/gateway/answer"},
	"internal/report":            {"swarm"},
	"internal/sim":               {"swarm"},
	"swarm":                      {},
	"pool":                       {},
	"pool/wire":                  {},
	"test":                       {"internal", "swarm", "pool", "test"},
}

// pure rooms decide without touching the world.
var pure = map[string][]string{
	"swarm":             {"net", "os", "log", "log/slog", "math/rand", "math/rand/v2", "syscall"},
	"internal/sampling": {"net", "os", "log", "log/slog", "time", "math/rand", "math/rand/v2"},
	"internal/stage":    {"net", "os", "log", "log/slog", "math/rand", "math/rand/v2"},
	"pool/wire":         {"os", "log", "log/slog", "math/rand", "math/rand/v2"},
}

// standardOnly rooms are libraries for others: they drag nothing in.
var standardOnly = []string{"swarm", "pool", "pool/wire"}

func TestImportsGoDownwardsOnly(t *testing.T) {
	for folder, p := range packages(t) {
		room := roomOf(folder)
		if room == "" {
			t.Errorf("%s belongs to no room: add it to ARCHITECTURE.md and to this test", folder)
			continue
		}
		for _, path := range p.Imports {
			inner, ours := strings.CutPrefix(path, "hecate/")
			if ours && !within(inner, room) && !slices.ContainsFunc(rooms[room], func(r string) bool { return within(inner, r) }) {
				t.Errorf("%s imports %s, but the room %s may import only %v", folder, inner, room, rooms[room])
			}
			if slices.Contains(standardOnly, room) && !ours && strings.Contains(strings.Split(path, "/")[0], ".") {
				t.Errorf("%s imports %s, but %s keeps to the standard library", folder, path, room)
			}
			if slices.Contains(pure[room], path) {
				t.Errorf("%s imports %s, but %s is pure", folder, path, room)
			}
		}
	}
}

// Only the engine knows ggml.
func TestOnlyTheEngineKnowsTheKernels(t *testing.T) {
	for folder, p := range packages(t) {
		for _, path := range p.Imports {
			if strings.HasPrefix(path, "github.com/ollama/ollama/ml") && !within(folder, "internal/engine") {
				t.Errorf("%s imports %s", folder, path)
			}
		}
	}
}

func TestEveryRoomExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for room := range rooms {
		if entries, err := os.ReadDir(room); err != nil || len(entries) == 0 {
			continue // a room that may come
		}
		if room != "test" && room != "cmd" && !strings.Contains(string(text), "`"+room) {
			t.Errorf("ARCHITECTURE.md does not know the room %s", room)
		}
	}
}

// roomOf is the innermost room of a folder.
func roomOf(folder string) string {
	best := ""
	for room := range rooms {
		if within(folder, room) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func within(folder, room string) bool {
	return folder == room || strings.HasPrefix(folder, room+"/")
}

// packages reads the imports of every package, with the kernels left in.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	out := map[string]*build.Package{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch name := d.Name(); {
		case path == ".":
			return nil
		case strings.HasPrefix(name, "."), name == "testdata", name == "node_modules", path == "tools", path == "bin":
			return filepath.SkipDir
		}
		p, err := build.ImportDir(path, 0)
		if err == nil && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			out[filepath.ToSlash(path)] = p
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d packages", len(out))
	}
	return out
}
