package tokens

// preTokenizer is how a byte-level BPE vocabulary cuts text into words before
// merging: the patterns one after the other, each cutting what the ones before
// left in one piece.
type preTokenizer struct {
	patterns     []string
	scan         scanner // does what the last pattern does, if there is one
	digits       bool    // the first of two patterns takes each digit alone
	ignoreMerges bool    // a word that is a token is taken whole
	addBOS       bool    // unless the file says otherwise
}

// The patterns are facts about the models: as their authors published them, in
// the syntax of regexp2.
const (
	contractions    = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	wordsAndSpaces  = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt2Words       = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Words     = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + wordsAndSpaces
	qwen2Words      = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + wordsAndSpaces
	upperLetters    = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerLetters    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	tekkenWords     = `[^\r\n\p{L}\p{N}]?` + upperLetters + `*` + lowerLetters + `+|[^\r\n\p{L}\p{N}]?` + upperLetters + `+` + lowerLetters + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4oWords      = `[^\r\n\p{L}\p{N}]?` + upperLetters + `*` + lowerLetters + `+` + contractions + `?|[^\r\n\p{L}\p{N}]?` + upperLetters + `+` + lowerLetters + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	deepseek3Words  = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	cjk             = `[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+`
	defaultSymbols  = `[\p{P}\$\+<=>\^~\|]+`
	falconSymbols   = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
	threeASCIIDigit = `[0-9][0-9][0-9]`
)

// preTokenizers is keyed by tokenizer.ggml.pre.
var preTokenizers = map[string]preTokenizer{}

func init() {
	for _, group := range []struct {
		pre   preTokenizer
		names []string
	}{
		{preTokenizer{patterns: []string{llama3Words}, scan: scanLlama3(3), ignoreMerges: true, addBOS: true}, []string{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}},
		{preTokenizer{patterns: []string{llama3Words}, scan: scanLlama3(3)}, []string{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}},
		{preTokenizer{patterns: []string{qwen2Words}, scan: scanLlama3(1)}, []string{"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"}},
		{preTokenizer{patterns: []string{gpt2Words}, scan: scanGPT2}, []string{"gpt-2", "phi-2", "olmo", "mpt", "roberta-bpe", "exaone4"}},
		{preTokenizer{patterns: []string{`\p{N}`, gpt2Words}, scan: scanGPT2, digits: true}, []string{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
		{preTokenizer{patterns: []string{tekkenWords}, scan: scanTekken, ignoreMerges: true, addBOS: true}, []string{"tekken"}},
		{preTokenizer{patterns: []string{gpt4oWords}}, []string{"gpt-4o", "llama4"}},
		{preTokenizer{patterns: []string{`\p{N}{1,3}`, cjk, deepseek3Words}}, []string{"deepseek-v3"}},
		{preTokenizer{patterns: []string{defaultSymbols, gpt2Words, `\p{N}+`, threeASCIIDigit}}, []string{"default"}},
		{preTokenizer{patterns: []string{falconSymbols, gpt2Words, threeASCIIDigit}}, []string{"falcon"}},
	} {
		for _, name := range group.names {
			preTokenizers[name] = group.pre
		}
	}
}
