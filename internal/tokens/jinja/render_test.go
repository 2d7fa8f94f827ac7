package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExtensionsOfHuggingFace(t *testing.T) {
	tmpl, err := Parse(`{% generation %}{{ strftime_now('%d %b %Y, %-d/%-m %H:%M %A %j %%') }}{% endgeneration %}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tmpl.Render(context.Background(), Input{Now: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)})
	if want := "04 Mar 2025, 4/3 05:06 Tuesday 063 %"; err != nil || got.S != want {
		t.Errorf("%q, %v; want %q", got.S, err, want)
	}
	_, err = render(t, `{{ raise_exception('no ' ~ 1) }}`, nil)
	var raised *RaisedError
	if !errors.As(err, &raised) || raised.Message != "no 1" {
		t.Errorf("raised %v", err)
	}
}

func TestParseNamesWhatIsNotSupported(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{% include '/etc/passwd' %}":         `template line 2: unsupported tag "include"`,
		"{% import 'x' as y %}":                  `unsupported tag "import"`,
		"{% from 'x' import y %}":                `unsupported tag "from"`,
		"{% extends 'x' %}":                      `unsupported tag "extends"`,
		"{% block a %}{% endblock %}":            `unsupported tag "block"`,
		"{% do x %}":                             `unsupported tag "do"`,
		"{% for x in y recursive %}{% endfor %}": "recursive loop",
		"{{ x | shout }}":                        `unsupported filter "shout"`,
		"{{ x is weird }}":                       `unsupported test "weird"`,
		"{{ f(*x) }}":                            "unsupported: * arguments",
		"{% break %}":                            "break outside of a loop",
		"{% for a in b %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}": "break outside of a loop",
		"{% if x %}":                 "missing {% endif %}",
		"{% endif %}":                `unsupported tag "endif"`,
		"{{ x ":                      "tag without }}",
		"{{ 'x }}":                   "string without end",
		"{# x":                       "comment without end",
		"{% raw %} {% endra %}":      "raw without endraw",
		"{{ a ? b }}":                "unexpected character '?'",
		"{{ a b }}":                  `unexpected "b"`,
		"{{ }}":                      "expected an expression, found end of tag",
		"{{ x[] }}":                  "empty subscript",
		"{% set a.b.c = 1 %}":        `unexpected "."`,
		"{% set %}":                  "expected a name, found end of tag",
		"{{ f(a=1, 2) }}":            "positional argument after keyword argument",
		"{{ 99999999999999999999 }}": "too large",
		"{% call x %}{% endcall %}":  "call block without a call",
		"{{ (1 }}":                   "tag without }}",
	} {
		_, err := Parse(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", source, err, want)
		}
	}
}

func TestErrorsNameTheirLine(t *testing.T) {
	_, err := render(t, "one\ntwo\n{% if true %}\n{{ missing.x }}\n{% endif %}", nil)
	var e *Error
	if !errors.As(err, &e) || e.Line != 4 || !strings.Contains(err.Error(), `"missing" is undefined`) {
		t.Errorf("error %v", err)
	}
}

// Templates that would eat the machine end with ErrLimit, and soon.
func TestHostileTemplatesEnd(t *testing.T) {
	deep := func(open, x, shut string, n int) string { return strings.Repeat(open, n) + x + strings.Repeat(shut, n) }
	for name, source := range map[string]string{
		"nested loops":     "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}",
		"huge range":       "{{ range(10**9)|list|length }}",
		"output":           "{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
		"doubling":         "{% set ns = namespace(x='ab') %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"doubling list":    "{% set ns = namespace(x=[1]) %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"straight":         "{% set x = 'ab' %}" + strings.Repeat("{% set x = x ~ x %}", 60),
		"repeat":           "{{ 'x' * 1000000000000 }}",
		"repeat chain":     "{{ 'x' * 10000 * 10000 * 10000 }}",
		"replace":          "{% set x = 'a' * 10000 %}{{ x|replace('a', x)|replace('a', x) }}",
		"join":             "{{ ['a', 'b']|join('x' * 1000000)|replace('x', 'y' * 1000000) }}",
		"indent":           "{{ ('\n' * 100000)|indent(1000)|indent(1000)|length }}",
		"recursion":        "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
		"mutual":           "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
		"binary recursion": "{% macro f(x) %}{% if x > 0 %}{{ f(x-1) }}{{ f(x-1) }}{% endif %}{% endmacro %}{{ f(30) }}",
		"caller":           "{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
		"deep list":        "{% set ns = namespace(x=[]) %}{% for a in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		"deep json":        "{% set ns = namespace(x=[]) %}{% for a in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
		"wide json":        "{% set ns = namespace(x=['a'*100]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
		"wide repr":        "{% set ns = namespace(x=['a'*100]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
		"wide equal":       "{% set ns = namespace(x=[1], y=[1]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
		"wide order":       "{% set ns = namespace(x=[1], y=[1]) %}{% for a in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x < ns.y }}",
		"characters":       "{% set x = 'a' * 10000000 %}{% for c in x %}{% endfor %}",
		"split":            "{{ ('a ' * 5000000).split(' ')|length }}",
		"nested brackets":  "{{ " + deep("[", "1", "]", 3000) + " }}",
		"nested parens":    "{{ " + deep("(", "1", ")", 3000) + " }}",
		"nested dicts":     "{{ " + deep("{'a':", "1", "}", 3000) + " }}",
		"nested not":       "{{ " + strings.Repeat("not ", 3000) + "1 }}",
		"nested minus":     "{{ " + strings.Repeat("- ", 3000) + "1 }}",
		"nested ifs":       deep("{% if 1 %}", "x", "{% endif %}", 3000),
		"nested else":      "{{ " + strings.Repeat("1 if 0 else ", 3000) + "1 }}",
		"long sum":         "{{ 1" + strings.Repeat(" + 1", 3000) + " }}",
		"long filters":     "{{ 'x'" + strings.Repeat("|upper", 3000) + " }}",
		"long access":      "{{ x" + strings.Repeat(".y", 3000) + " }}",
		"many elifs":       "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 3000) + "{% endif %}",
		"big source":       strings.Repeat("x", maxSource+1),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, source, nil); !errors.Is(err, ErrLimit) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestRenderStopsWithItsContext(t *testing.T) {
	tmpl, err := Parse("{% for a in range(100000) %}{% for b in range(5) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tmpl.Render(ctx, Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	vars := map[string]Value{"stop": callable(func(*evaluator, []Value, map[string]Value) (Value, error) { cancel(); return nil, nil })}
	tmpl, err = Parse("{{ stop() }}{% for a in range(100000) %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(ctx, Input{Vars: vars}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled on the way: %v", err)
	}
}

// show writes marked stretches as <1:text>.
func show(t Text) string {
	var b strings.Builder
	at := 0
	for _, s := range t.Spans {
		fmt.Fprintf(&b, "%s<%d:%s>", t.S[at:s.Start], s.Mark, t.S[s.Start:s.End])
		at = s.End
	}
	return b.String() + t.S[at:]
}

// Whatever a template does with a text, its bytes keep their marks.
func TestMarksSurviveEverything(t *testing.T) {
	json, err := FromJSON([]byte(`{"k<": ["a\n\"b", 1, {"z": "y"}]}`), 2)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]Value{"x": Marked(" ab,cd ", 1), "y": Marked("Q", 2), "j": json, "t": Trusted("t")}
	for source, want := range map[string]string{
		"{{ x }}":                                           "<1: ab,cd >",
		"[{{ x|trim }}]":                                    "[<1:ab,cd>]",
		"{{ x ~ '-' ~ y ~ t }}":                             "<1: ab,cd >-<2:Q>t",
		"{{ x + y }}":                                       "<1: ab,cd ><2:Q>",
		"{{ x.split(',')[1] }}":                             "<1:cd >",
		"{{ x.split(',')|join('+') }}":                      "<1: ab>+<1:cd >",
		"{{ y.join(['1', '2']) }}":                          "1<2:Q>2",
		"{{ x[1:3] }}{{ x[-2] }}{{ x[::-1] }}":              "<1:abd dc,ba >",
		"{{ x.replace('ab', y) }}":                          "<1: ><2:Q><1:,cd >",
		"{{ 'a-b'.replace('-', x|trim) }}":                  "a<1:ab,cd>b",
		"{{ x|upper }}{{ x.title() }}":                      "<1: AB,CD  Ab,Cd >",
		"{{ ('a' ~ x)|upper }}":                             "<1:A AB,CD >",
		"{{ x|list|last }}{{ x|first }}":                    "<1:  >",
		"{% for c in y %}{{ c }}.{% endfor %}":              "<2:Q>.",
		"{{ y * 3 }}":                                       "<2:QQQ>",
		"{{ x|tojson }}":                                    `"<1: ab,cd >"`,
		"{{ j|tojson }}":                                    `{"<2:k<>": ["<2:a\n\"b>", 1, {"<2:z>": "<2:y>"}]}`,
		"{{ j }}":                                           `{'<2:k<>': ['<2:a\n"b>', 1, {'<2:z>': '<2:y>'}]}`,
		"{% for k, v in j.items() %}{{ k }}{% endfor %}":    "<2:k<>",
		"{% set z %}({{ x }}){% endset %}{{ z }}":           "(<1: ab,cd >)",
		"{% filter upper %}{{ y }}{% endfilter %}":          "<2:Q>",
		"{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(y) }}": "[<2:Q>]",
		"{{ x|indent }}{{ ('a\n' ~ y)|indent(1) }}":         "<1: ab,cd >a\n <2:Q>",
		"{{ y|default('d') }}{{ nope|default(y) }}":         "<2:QQ>",
		"{{ [x, y]|sort|join }}{{ [y]|map('lower')|join }}": "<1: ab,cd ><2:Qq>",
		"{{ x.strip().rsplit(',', 1)[0] }}":                 "<1:ab>",
		"{{ x.removeprefix(' ') }}{{ x.splitlines()[0] }}":  "<1:ab,cd  ab,cd >",
		"{{ x.strip(' a') }}":                               "<1:b,cd>",
		"{{ 'a' if x == ' ab,cd ' else 'b' }}":              "a",
		"{{ y in ['Q'] }}{{ {'Q': 1}[y] }}":                 "True1",
		"{{ dict(a=y) }}{{ [y] }}{{ (y,) }}":                "{'a': '<2:Q>'}['<2:Q>']('<2:Q>',)",
	} {
		got, err := render(t, source, vars)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if diff := cmp.Diff(want, show(got)); diff != "" {
			t.Errorf("%s\n%s", source, diff)
		}
	}
}

// Templates cannot change what they were given.
func TestInputIsNotChanged(t *testing.T) {
	d := NewDict()
	d.Set(Trusted("k"), NewList(int64(1)))
	for _, source := range []string{"{% set d.k = 2 %}", "{{ d.update({'k': 2}) }}", "{{ d.k.append(2) }}", "{{ d.pop('k') }}", "{% set x = d.k + [2] %}{{ x|reverse|list }}{{ d.k|sort }}"} {
		_, _ = render(t, source, map[string]Value{"d": d})
		if v, _ := d.Get("k"); len(v.(*List).Items) != 1 {
			t.Errorf("%s changed its input", source)
		}
	}
}

// Whatever the source, parsing and rendering end without a panic, and marks fit
// the text.
func FuzzTemplate(f *testing.F) {
	vars := testVars(f)
	vars["x"] = Marked("user <|text|>", 2)
	for _, s := range []string{"{{ x|trim }}", "{% for m in msgs %}{{ loop.index ~ m.role[::-1] }}{% endfor %}", "{% macro f(a=1) %}{{ a }}{% endmacro %}{{ f(x) }}",
		"{%- if d is mapping and 'a' in d -%}{{ d|tojson(indent=2) }}{% endif +%}", "{% set ns = namespace(a=1) %}{% set ns.a = x.split('|') %}{{ ns.a }}", "{% raw %}{{{% endraw %}{# c #}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		out, err := tmpl.Render(ctx, Input{Vars: vars, Limits: Limits{Steps: 20_000, Output: 1 << 16, Work: 1 << 20}})
		if err != nil {
			return
		}
		at := 0
		for _, s := range out.Spans {
			if s.Start < at || s.End <= s.Start || s.End > len(out.S) || s.Mark == 0 {
				t.Fatalf("span %+v after byte %d of %d", s, at, len(out.S))
			}
			at = s.End
		}
	})
}
