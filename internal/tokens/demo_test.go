package tokens

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/demomodel"
)

func demo(t testing.TB) *Tokenizer {
	t.Helper()
	s, err := readSource(demomodel.GGUF())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// golden is what llama.cpp made of the demo model.
type golden struct {
	Name, Kind, Prompt string
	Messages           []Message
	PromptIDs          []int32 `json:"prompt_ids"`
	Runs               map[string]struct {
		IDs  []int32
		Text string
	}
}

func goldens(t testing.TB) []golden {
	t.Helper()
	raw, err := os.ReadFile("../demomodel/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct{ Cases []golden }
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Cases) != 24 {
		t.Fatalf("%d golden cases, want 24", len(g.Cases))
	}
	return g.Cases
}

func TestDemoModelEqualsLlamaCpp(t *testing.T) {
	tok := demo(t)
	if info := tok.Template(); info.Name != "gguf" || info.Problem != nil {
		t.Fatalf("template in use: %+v", info)
	}
	for _, g := range goldens(t) {
		ids, err := tok.Encode(g.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(g.PromptIDs, ids); diff != "" {
			t.Errorf("%s: Encode:\n%s", g.Name, diff)
		}
		if g.Kind == "chat" {
			checkChat(t, tok, g)
		}
		for name, run := range g.Runs {
			if got := tok.Decode(run.IDs); got != run.Text {
				t.Errorf("%s, %s: decoded %q, want %q", g.Name, name, got, run.Text)
			}
		}
	}
}

func checkChat(t *testing.T, tok *Tokenizer, g golden) {
	t.Helper()
	chat := Chat{Messages: g.Messages, Generate: true}
	text, err := tok.RenderChat(context.Background(), chat)
	if err != nil || text != g.Prompt {
		t.Errorf("%s: rendered %q, %v; want %q", g.Name, text, err, g.Prompt)
	}
	ids, err := tok.EncodeChat(context.Background(), chat)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(g.PromptIDs, ids); diff != "" {
		t.Errorf("%s: EncodeChat:\n%s", g.Name, diff)
	}
}

func TestDemoModelMetadata(t *testing.T) {
	tok := demo(t)
	s := tok.Source()
	if s.Architecture != "llama" || s.Name != "hecate-demo" || s.ContextLength != 512 || tok.Size() != 2048 {
		t.Errorf("metadata: %q %q context %d, %d tokens", s.Architecture, s.Name, s.ContextLength, tok.Size())
	}
	if diff := cmp.Diff([]int32{2, 4}, tok.Ends()); diff != "" {
		t.Errorf("ends:\n%s", diff)
	}
	if id, ok := tok.BOS(); !ok || id != 1 {
		t.Errorf("BOS %d, %t", id, ok)
	}
	if got := tok.TokenName(4); got != "<|im_end|>" {
		t.Errorf("name of token 4: %q", got)
	}
	if got := tok.TokenBytes(4); got != nil {
		t.Errorf("a control token stands for %q", got)
	}
	if got := tok.TokenBytes(5 + 0xe6); string(got) != "\xe6" { // byte tokens begin at 5
		t.Errorf("byte token stands for %q", got)
	}
}
