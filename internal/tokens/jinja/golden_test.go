package jinja

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testVars are the variables of testdata/cases.json.
func testVars(t testing.TB) map[string]Value {
	t.Helper()
	raw, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Vars map[string]json.RawMessage `json:"vars"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	vars := map[string]Value{}
	for k, v := range cases.Vars {
		if vars[k], err = FromJSON(v, 1); err != nil {
			t.Fatal(err)
		}
	}
	return vars
}

func render(t testing.TB, source string, vars map[string]Value) (Text, error) {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		return Text{}, err
	}
	return tmpl.Render(context.Background(), Input{Vars: vars})
}

// What Jinja itself renders, ours renders; where it fails, ours fails.
func TestGoldensOfJinja(t *testing.T) {
	raw, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var goldens []struct{ Template, Output, Error string }
	if err := json.Unmarshal(raw, &goldens); err != nil {
		t.Fatal(err)
	}
	vars := testVars(t)
	for _, g := range goldens {
		got, err := render(t, g.Template, vars)
		switch {
		case g.Error == "" && err != nil:
			t.Errorf("%s\nerror: %v\n want: %q", g.Template, err, g.Output)
		case g.Error != "" && err == nil:
			t.Errorf("%s\nno error, Jinja has %s", g.Template, g.Error)
		case g.Error == "":
			if diff := cmp.Diff(g.Output, got.S); diff != "" {
				t.Errorf("%s\n%s", g.Template, diff)
			}
		}
	}
}
