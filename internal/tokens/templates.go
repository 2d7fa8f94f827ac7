package tokens

import "strings"

// namedTemplate is a chat template of ours for a family of models, for files
// that carry none or one that cannot be used.
type namedTemplate struct {
	name   string
	marker string // a token or text by which the family is known
	source string
}

// namedTemplates in the order in which they are tried; the first is also for
// files of which nothing is known.
var namedTemplates = []namedTemplate{
	{"chatml", "<|im_start|>", `
{%- for m in messages -%}
{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}
{%- endfor -%}
{{ '<|im_start|>assistant\n' if add_generation_prompt }}`},

	{"llama3", "<|start_header_id|>", `
{{- bos_token }}
{%- for m in messages -%}
{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ m.content|trim ~ '<|eot_id|>' }}
{%- endfor -%}
{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' if add_generation_prompt }}`},

	{"gemma", "<start_of_turn>", `
{{- bos_token }}
{%- set ns = namespace(system='') -%}
{%- for m in messages -%}
	{%- if m.role == 'system' -%}
		{%- set ns.system = ns.system ~ m.content|trim ~ '\n\n' -%}
	{%- else -%}
		{{- '<start_of_turn>' ~ ('model' if m.role == 'assistant' else 'user') ~ '\n' ~ ns.system ~ m.content|trim ~ '<end_of_turn>\n' -}}
		{%- set ns.system = '' -%}
	{%- endif -%}
{%- endfor -%}
{{ '<start_of_turn>model\n' if add_generation_prompt }}`},

	{"mistral", "[INST]", `
{{- bos_token }}
{%- set ns = namespace(system='') -%}
{%- for m in messages -%}
	{%- if m.role == 'system' -%}
		{%- set ns.system = ns.system ~ m.content ~ '\n\n' -%}
	{%- elif m.role == 'assistant' -%}
		{{- ' ' ~ m.content|trim ~ eos_token -}}
	{%- else -%}
		{{- '[INST] ' ~ ns.system ~ m.content ~ '[/INST]' -}}
		{%- set ns.system = '' -%}
	{%- endif -%}
{%- endfor -%}`},
}

// namedFor chooses the named template for a file: by what its own template
// writes, else by what its vocabulary holds.
func namedFor(s *Source) namedTemplate {
	for _, n := range namedTemplates {
		if strings.Contains(s.ChatTemplate, n.marker) {
			return n
		}
	}
	known := map[string]bool{}
	for _, t := range s.Tokens {
		known[t] = true
	}
	for _, n := range namedTemplates {
		if known[n.marker] {
			return n
		}
	}
	return namedTemplates[0]
}
