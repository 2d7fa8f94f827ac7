package jsonschema

import "testing"

// Schemas as pydantic and zod write them, with an answer that must be possible
// and ones that must not.
func TestSchemasThatClientsWrite(t *testing.T) {
	v := words(t)
	for _, c := range []struct {
		name, schema string
		good, bad    []string
	}{
		{"pydantic: optional with a default", `{"properties":{"nick":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Nick"}},"title":"M","type":"object"}`,
			[]string{`{}`, `{"nick":null}`, `{"nick":"x"}`}, []string{`{"nick":1}`, `{"other":1}`}},
		{"pydantic: nested model", `{"$defs":{"Pet":{"properties":{"name":{"title":"Name","type":"string"}},"required":["name"],"title":"Pet","type":"object"}},"properties":{"pet":{"$ref":"#/$defs/Pet"},"pets":{"items":{"$ref":"#/$defs/Pet"},"title":"Pets","type":"array"}},"required":["pet","pets"],"title":"Owner","type":"object"}`,
			[]string{`{"pet":{"name":"a"},"pets":[{"name":"b"}]}`}, []string{`{"pet":"a","pets":[]}`}},
		{"pydantic: nested model with a description", `{"$defs":{"Pet":{"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}},"properties":{"pet":{"$ref":"#/$defs/Pet","description":"the pet","default":{"name":"a"}}},"type":"object"}`,
			[]string{`{"pet":{"name":"a"}}`}, []string{`{"pet":{}}`}},
		{"pydantic 2.0: the same by allOf", `{"$defs":{"Pet":{"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}},"properties":{"pet":{"allOf":[{"$ref":"#/$defs/Pet"}],"description":"the pet"}},"required":["pet"],"type":"object"}`,
			[]string{`{"pet":{"name":"a"}}`}, []string{`{"pet":{}}`}},
		{"pydantic: literals and enums", `{"$defs":{"Mood":{"enum":["good",2,null],"title":"Mood"}},"properties":{"one":{"const":"x","title":"One","type":"string"},"old":{"const":"x","enum":["x"],"type":"string"},"some":{"enum":["a","b"],"type":"string"},"mood":{"$ref":"#/$defs/Mood"}},"required":["one","old","some","mood"],"type":"object"}`,
			[]string{`{"one":"x","old":"x","some":"b","mood":null}`, `{"one":"x","old":"x","some":"a","mood":2}`}, []string{`{"one":"y","old":"x","some":"b","mood":2}`}},
		{"pydantic: discriminated union", `{"$defs":{"Cat":{"properties":{"kind":{"const":"cat","type":"string"},"lives":{"type":"integer"}},"required":["kind","lives"],"type":"object"},"Dog":{"properties":{"kind":{"enum":["dog","puppy"],"type":"string"},"name":{"type":"string"}},"required":["kind","name"],"type":"object"}},"properties":{"pet":{"discriminator":{"mapping":{"cat":"#/$defs/Cat","dog":"#/$defs/Dog","puppy":"#/$defs/Dog"},"propertyName":"kind"},"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]}},"required":["pet"],"type":"object"}`,
			[]string{`{"pet":{"kind":"cat","lives":9}}`, `{"pet":{"kind":"puppy","name":"x"}}`}, []string{`{"pet":{"kind":"cat","name":"x"}}`, `{"pet":{"kind":"cow"}}`}},
		{"pydantic: a tree of a discriminated union", `{"$defs":{"Leaf":{"properties":{"t":{"const":"leaf"}},"required":["t"],"type":"object"},"Node":{"properties":{"t":{"const":"node"},"kids":{"items":{"discriminator":{"propertyName":"t"},"oneOf":[{"$ref":"#/$defs/Node"},{"$ref":"#/$defs/Leaf"}]},"type":"array"}},"required":["t","kids"],"type":"object"}},"$ref":"#/$defs/Node"}`,
			[]string{`{"t":"node","kids":[{"t":"leaf"},{"t":"node","kids":[]}]}`}, []string{`{"t":"leaf"}`}},
		{"pydantic: tuples", `{"properties":{"at":{"maxItems":2,"minItems":2,"prefixItems":[{"type":"number"},{"type":"string"}],"type":"array"},"many":{"items":{"type":"integer"},"type":"array"}},"required":["at","many"],"type":"object"}`,
			[]string{`{"at":[1.5,"x"],"many":[1,2,3]}`}, []string{`{"at":[1.5],"many":[]}`, `{"at":[1.5,"x",2],"many":[]}`}},
		{"pydantic: dictionaries", `{"properties":{"d":{"additionalProperties":{"type":"integer"},"type":"object"},"any":{"additionalProperties":true,"type":"object"}},"required":["d","any"],"type":"object"}`,
			[]string{`{"d":{"a":1},"any":{"b":[null]}}`}, []string{`{"d":{"a":"1"},"any":{}}`}},
		{"pydantic: times and identities", `{"properties":{"at":{"format":"date-time","type":"string"},"day":{"format":"date","type":"string"},"id":{"format":"uuid","type":"string"},"link":{"format":"uri","maxLength":2083,"minLength":1,"type":"string"}},"required":["at","day","id","link"],"type":"object"}`,
			[]string{`{"at":"2024-02-28T23:59:59Z","day":"1999-12-31","id":"123e4567-e89b-42d3-a456-426614174000","link":"http://x"}`}, []string{`{"at":"now","day":"1999-12-31","id":"123e4567-e89b-42d3-a456-426614174000","link":"x"}`, `{"at":"2024-02-28T23:59:59Z","day":"1999-02-30","id":"123e4567-e89b-42d3-a456-426614174000","link":"x"}`}},
		{"pydantic: bounds", `{"properties":{"n":{"exclusiveMinimum":0,"maximum":100,"type":"integer"},"s":{"maxLength":3,"minLength":1,"type":"string"},"p":{"pattern":"^[a-z]+$","type":"string"},"l":{"items":{"type":"boolean"},"maxItems":2,"minItems":1,"type":"array"}},"required":["n","s","p","l"],"additionalProperties":false,"type":"object"}`,
			[]string{`{"n":1,"s":"abc","p":"z","l":[true]}`}, []string{`{"n":0,"s":"abc","p":"z","l":[true]}`, `{"n":1,"s":"","p":"z","l":[true]}`, `{"n":1,"s":"abc","p":"","l":[true]}`, `{"n":1,"s":"abc","p":"z","l":[]}`}},
		{"pydantic: hints for people", `{"properties":{"s":{"type":"string","examples":["a"],"example":"a","deprecated":true,"x-order":3}},"required":["s"],"type":"object"}`,
			[]string{`{"s":"b"}`}, []string{`{}`}},
		{"zod: object", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"},"b":{"type":["number","null"]},"c":{"anyOf":[{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],"additionalProperties":false},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false}`,
			[]string{`{"a":"","b":null}`, `{"a":"","b":1,"c":{"x":true}}`}, []string{`{"a":"","b":"1"}`, `{"a":"","b":1,"d":1}`}},
		{"zod: enums of several types", `{"type":["string","number"],"enum":["a",1]}`, []string{`"a"`, `1`}, []string{`"b"`, `2`}},
		{"zod: a nullable enum", `{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}`, []string{`"a"`, `null`}, []string{`"c"`}},
		{"zod 3: tuple", `{"type":"array","minItems":2,"maxItems":2,"items":[{"type":"string"},{"type":"number"}]}`, []string{`["a",1]`}, []string{`["a"]`, `[1,"a"]`, `["a",1,2]`}},
		{"zod 3: tuple with a rest", `{"type":"array","minItems":1,"items":[{"type":"string"}],"additionalItems":{"type":"boolean"}}`, []string{`["a"]`, `["a",true,false]`}, []string{`[]`, `["a",1]`}},
		{"zod 4: tuple", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"array","prefixItems":[{"type":"string"},{"type":"number"}]}`, []string{`["a",1]`}, []string{`[]`, `["a"]`, `["a",1,2]`}},
		{"zod 4: tuple with a rest", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"boolean"}}`, []string{`["a"]`, `["a",true,false]`}, []string{`[]`, `["a",1]`}},
		{"zod 4: discriminated union", `{"oneOf":[{"type":"object","properties":{"status":{"type":"string","const":"ok"},"data":{"type":"string"}},"required":["status","data"],"additionalProperties":false},{"type":"object","properties":{"status":{"type":"string","const":"failed"},"error":{"type":"string"}},"required":["status","error"],"additionalProperties":false}]}`,
			[]string{`{"status":"ok","data":"x"}`, `{"status":"failed","error":"x"}`}, []string{`{"status":"ok","error":"x"}`}},
		{"zod 4: record", `{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"number"}}`, []string{`{}`, `{"a":1}`}, []string{`{"a":"1"}`}},
		{"zod 4: integer", `{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, []string{`0`, `-5`}, []string{`0.5`}},
		{"zod 4: a named part", `{"type":"object","properties":{"u":{"$ref":"#/$defs/User"}},"required":["u"],"additionalProperties":false,"$defs":{"User":{"id":"User","type":"object","properties":{"n":{"type":"string"}},"required":["n"],"additionalProperties":false}}}`,
			[]string{`{"u":{"n":"x"}}`}, []string{`{"u":{}}`}},
		{"zod 4: identity", `{"type":"string","format":"uuid","pattern":"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$"}`,
			[]string{`"123e4567-e89b-42d3-a456-426614174000"`, `"00000000-0000-0000-0000-000000000000"`}, []string{`"x"`}},
		{"zod 4: time", `{"type":"string","format":"date-time","pattern":"^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d+)?)?(?:Z))$"}`,
			[]string{`"2024-02-29T10:00:00Z"`}, []string{`"2023-02-29T10:00:00Z"`}},
		{"zod 4: base64", `{"type":"string","format":"base64","contentEncoding":"base64","pattern":"^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$"}`,
			[]string{`""`, `"QUJD"`, `"QUI="`}, []string{`"QUI"`, `"??"`}},
	} {
		a := automaton(t, v, c.schema)
		for _, text := range c.good {
			if !admits(a, text) {
				t.Errorf("%s: refuses %s", c.name, text)
			}
			if err := satisfies(c.schema, text); err != nil {
				t.Errorf("%s: %s: %v", c.name, text, err)
			}
		}
		for _, text := range c.bad {
			if admits(a, text) {
				t.Errorf("%s: admits %s", c.name, text)
			}
		}
	}
}
