package bench

import (
	"slices"
	"testing"
	"time"
)

func TestTheDemoModelIsASubject(t *testing.T) {
	s, err := openSubject(ModelDemo)
	if err != nil {
		t.Fatal(err)
	}
	if s.path != "" || s.size < 1000 || len(s.ends) == 0 {
		t.Errorf("%+v", s)
	}
	for _, end := range s.ends {
		if slices.Contains(s.prompt(1000, 1), end) {
			t.Errorf("a prompt holds the end token %d", end)
		}
	}
	if bias := s.endless(); len(bias) != len(s.ends) {
		t.Errorf("%v forbids not %v", bias, s.ends)
	}
}

func TestPrompts(t *testing.T) {
	s := &subject{size: 2000}
	if !slices.Equal(s.prompt(50, 1), s.prompt(50, 1)) {
		t.Error("the same seed gives other prompts")
	}
	if slices.Equal(s.prompt(50, 1), s.prompt(50, 2)) {
		t.Error("another seed gives the same prompt")
	}
	for _, id := range s.prompt(5000, 3) {
		if id < 500 || id >= 2000 {
			t.Fatalf("token %d of 2000", id)
		}
	}
}

func TestAModelThatIsNotThere(t *testing.T) {
	if _, err := openSubject(t.TempDir() + "/none.gguf"); err == nil {
		t.Error("no error")
	}
}

func TestProcessorTimeIsRead(t *testing.T) {
	const line = "4242 (a name) with ) R 1 1 1 0 -1 4194560 1 2 3 4 150 30 0 0 20 0 9 0 1"
	if got := parseStat(line); got != 1800*time.Millisecond {
		t.Errorf("%s, want 1.8s", got)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) R 1 2", "1 (x) R 1 1 1 0 -1 4194560 1 2 3 4 a b 0"} {
		if got := parseStat(bad); got != 0 {
			t.Errorf("%q: %s", bad, got)
		}
	}
	if got := cpuTime([]int{-1}); got != 0 {
		t.Errorf("no such process used %s", got)
	}
}
