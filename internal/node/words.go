package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hecate/internal/engine"
	"hecate/internal/sampling/grammar"
	"hecate/internal/tokens"
)

// words has the vocabularies of models, which answers of a given shape need to
// be drawn. Each is read once, when the first such answer comes.
type words struct {
	content func(model string) string // of a model as the plan has it; "": the plan does not know it
	// open gives the model's weights as they are loaded here.
	open func(ctx context.Context, model, content string) (engine.Weights, error)

	mu sync.Mutex
	by map[string]*lexicon
}

type lexicon struct {
	content    string
	vocabulary *grammar.Vocabulary
}

// of gives a model's vocabulary.
func (w *words) of(ctx context.Context, model string) (*grammar.Vocabulary, error) {
	w.mu.Lock() // while one reads, the others wait: it takes well under a second
	defer w.mu.Unlock()
	content := w.content(model)
	if known := w.by[model]; known != nil && known.content == content {
		return known.vocabulary, nil
	}
	weights, err := w.open(ctx, model, content)
	if err != nil {
		return nil, fmt.Errorf("find the vocabulary of %s: %w", model, err)
	}
	defer weights.Close()
	v, err := readWords(weights, model)
	if err != nil {
		return nil, fmt.Errorf("read the vocabulary of %s: %w", model, err)
	}
	if w.by == nil {
		w.by = map[string]*lexicon{}
	}
	w.by[model] = &lexicon{content, v}
	return v, nil
}

// warmEvery is how often a node looks whether it draws tokens of a model whose
// vocabulary it has not read.
const warmEvery = 2 * time.Second

// watchWords reads vocabularies before they are needed, so that the first answer
// of a given shape does not wait for it.
func (n *Node) watchWords(ctx context.Context) {
	every(ctx, warmEvery, func() {
		for _, f := range n.engine.Fragments() {
			if !f.Head {
				continue
			}
			if _, err := n.server.words.of(ctx, f.Model); err != nil {
				n.log.Debug("no vocabulary for answers of a given shape", "model", f.Model, "because", err)
			}
		}
	})
}

// readWords reads the text side of a model's file.
func readWords(weights engine.Weights, model string) (*grammar.Vocabulary, error) {
	source, err := tokens.ReadSource(weights, weights.Size(), model)
	if err != nil {
		return nil, err
	}
	t, err := tokens.New(source)
	if err != nil {
		return nil, err
	}
	bytes := make([][]byte, t.Size())
	for id := range bytes {
		bytes[id] = t.TokenBytes(int32(id))
	}
	return grammar.NewVocabulary(bytes, t.Ends())
}

// words reads what this node holds.
func (n *Node) words() *words {
	return &words{
		content: func(model string) string {
			if doc := n.doc.Load(); doc != nil {
				return doc.Models[model]
			}
			return ""
		},
		open: func(ctx context.Context, model, content string) (engine.Weights, error) {
			for _, f := range n.engine.Fragments() {
				if f.Model == model && f.Head {
					return n.larder.Open(ctx, model, content, engine.Range{First: f.Layers.Last, Last: f.Layers.Last})
				}
			}
			return nil, fmt.Errorf("the model's last layer is not loaded here")
		},
	}
}
