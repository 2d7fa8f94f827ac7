package jsonschema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// costly are schemas that ask for as much work as they can.
func costly() map[string]string {
	var refs, wide, enum []string
	for i := range 2000 {
		refs = append(refs, fmt.Sprintf(`"d%d":{"type":"array","items":{"$ref":"#/$defs/d%d"}}`, i, i+1))
	}
	for i := range 1000 {
		wide = append(wide, fmt.Sprintf(`{"type":"object","properties":{"k":{"const":"v%d"},"x":{"type":"integer","minimum":%d,"maximum":1000000000}},"required":["k","x"]}`, i, i))
	}
	var alike []string
	for i := range 500 {
		var names []string
		for j := range 30 {
			names = append(names, fmt.Sprintf(`"n%d"`, (i+j)%58))
		}
		alike = append(alike, `{"type":"object","required":[`+strings.Join(names, ",")+`],"additionalProperties":true}`)
	}
	for i := range maxChoice {
		enum = append(enum, fmt.Sprintf(`"value number %d"`, i))
	}
	return map[string]string{
		"references": `{"$defs":{` + strings.Join(refs, ",") + `,"d2000":{"type":"null"}},"$ref":"#/$defs/d0"}`,
		"choices":    `{"anyOf":[` + strings.Join(wide, ",") + `]}`,
		"branches":   `{"oneOf":[` + strings.Join(wide, ",") + `]}`,
		"alike":      `{"oneOf":[` + strings.Join(alike, ",") + `]}`,
		"values":     `{"enum":[` + strings.Join(enum, ",") + `]}`,
		"classes":    `{"type":"string","pattern":"^(\\p{L}|\\p{N}){20}$"}`,
		"lists":      strings.Repeat(`{"type":"array","minItems":1000,"items":`, 20) + `{"type":"string","minLength":1000}` + strings.Repeat(`}`, 20),
	}
}

func BenchmarkCostlySchemas(b *testing.B) {
	for name, schema := range costly() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				builder := NewBuilder()
				if e, err := builder.Schema(json.RawMessage(schema)); err == nil {
					_, _ = builder.Grammar(e)
				}
			}
		})
	}
}
