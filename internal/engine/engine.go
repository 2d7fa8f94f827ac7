// Package engine runs ranges of a language model's layers on this machine.
//
// The unit of loading is one layer (plus the embedding piece, which comes with
// the first layer, and the head piece, which comes with the last). A fragment
// is any run of consecutive loaded layers; a session runs on any sub-range of
// one. Hidden states travel as float32. With quantised weights a row's result
// depends on nothing but its own history: not on the other sessions of its
// batch, the cache cells, the number of threads, how the prompt was cut into
// chunks, or where the model was cut into ranges.
//
// All loading and computing of a process happens one after the other, over all
// models and engines: the kernels share their work memory.
//
// The package refuses to do these things: sample tokens, turn text into tokens
// (both need no kernels and live elsewhere), and talk to a network. Built with
// the tag noengine, or without cgo, [New] returns [ErrNoEngine] and nothing of
// the kernels is linked.
package engine

import (
	"context"
	"time"
)

// PieceOverhead is what a loaded piece (a layer, the embedding, the head) takes
// besides its weights, in bytes: descriptions and a scheduler. Measured, rounded
// up.
const PieceOverhead = 160 << 10

// Engine holds layers and runs sessions on them. All methods may be called
// from many goroutines.
type Engine interface {
	// LoadLayers loads the layers of one range that are not loaded yet, one by
	// one, under running sessions of other layers. Each is warmed before it
	// counts as loaded. progress, which may be nil, is called from one
	// goroutine. When ctx ends or a layer fails, the layers that were finished
	// stay. Errors: ErrOverBudget with the missing bytes, before anything is
	// allocated; ErrUnsupported for what no adapter implements; a
	// *gguf.FormatError for a broken file.
	LoadLayers(ctx context.Context, req LoadRequest, progress func(Progress)) error

	// UnloadLayers gives the memory of these layers back. Layers that are not
	// loaded are skipped. It fails with ErrInUse, and unloads nothing, while an
	// open session needs one of them.
	UnloadLayers(ctx context.Context, model string, layers Range) error

	// Fragments lists what is loaded: maximal runs of consecutive layers,
	// ordered by model and first layer.
	Fragments() []Fragment

	// Open reserves cache cells on every layer of the range and starts an empty
	// session. Errors: ErrLayerNotHeld, ErrNoCells with the shortfall.
	Open(ctx context.Context, opts SessionOptions) (Session, error)

	// Memory says what is allocated against the budget.
	Memory() Memory

	// Stats returns running totals and moving averages since New.
	Stats() Stats

	// Close ends all sessions with ErrClosed and frees everything. It waits for
	// the pass that is running. Closing twice is harmless.
	Close() error
}

// Session is one sequence of tokens on one range of layers. Two ranges of the
// same answer on one node are two sessions. A session is used by one goroutine
// at a time, except Close, which may come at any time.
type Session interface {
	// Step runs the rows of in through the range and returns when the last of
	// them is computed. Rows are computed together with those of other sessions
	// of the same range, long inputs in several chunks. If ctx ends first, the
	// rows that were already computed stay (see Held). Errors: ErrPosition,
	// ErrNoCells, ErrNotFinite (the session is then finished and accepts
	// nothing but Close), ErrClosed, ctx's error.
	Step(ctx context.Context, in Input) (Output, error)

	// Grow makes room for so many positions in all, on every layer or on none;
	// what the session holds stays. Fewer than it has room for change nothing.
	// Cells that are kept for rescues are used as by Open. Errors: ErrNoCells,
	// after which the session goes on with the room that it had; ErrInput during
	// a step; ErrClosed, ctx's error.
	Grow(ctx context.Context, cells int) error

	// Truncate forgets all positions from n on; n is in 0..Held().
	Truncate(n int) error

	// Held is the number of positions in the cache, and so the position at
	// which the next Step must begin.
	Held() int

	// Close gives the cells back, at the latest when the pass that is running
	// ends. A Step that waits returns ErrClosed. Closing twice is harmless.
	Close() error
}

// Options say how an engine works. Zero values mean the defaults.
type Options struct {
	// Threads that compute, 1 or more. Default 1: the kernels spin while they
	// wait, so processes that share a machine's cores must not use more threads
	// than there are cores in all.
	Threads int

	// MemoryBudget is the most that weights, cache and work memory may take, in
	// bytes. 0: no limit.
	MemoryBudget int64

	// MaxBatch is the largest number of rows computed in one pass. Default 256.
	MaxBatch int

	// MixTarget is how long a pass that serves running streams may be stretched
	// by rows of long prompts. Default 60 ms.
	MixTarget time.Duration

	// ContextTokens is the longest sequence one session may reserve. 0: the
	// model's own context length.
	ContextTokens int

	// Cells is the number of cache cells (tokens) allocated with each layer and
	// shared by the sessions on it. Default: 4 sequences of the context length,
	// at most 8192, at least one sequence.
	Cells int

	// RescueShare K keeps the last 1/K of each layer's cells for sessions that
	// rescue an answer. 0: 8. Negative: no reserve.
	RescueShare int

	// ScratchDir is for small temporary files. Default: os.TempDir().
	ScratchDir string
}

// Range is a closed interval of layer numbers, from 0.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Len is the number of layers in the range.
func (r Range) Len() int { return r.Last - r.First + 1 }

// Contains says whether o lies within r.
func (r Range) Contains(o Range) bool { return r.First <= o.First && o.Last <= r.Last }

// LoadRequest names layers and where their tensors are.
type LoadRequest struct {
	// Model is the name by which sessions ask for the layers. All files loaded
	// under one name must be of the same model.
	Model string
	// Path is a GGUF file, whole or a shard, that has the tensors of all the
	// layers (and the embedding for layer 0, the head for the last layer). It
	// is not needed any more after loading.
	Path string
	// Weights, if not nil, is read instead of the file, and closed when the
	// layers are loaded or not. Path then only names it in errors.
	Weights Weights
	// Layers to load.
	Layers Range
	// Cells is the number of cache cells (tokens) allocated with each of these
	// layers and shared by the sessions on it; 0: Options.Cells. It must be the
	// same for all layers of a model.
	Cells int
}

// Progress is how far loading has come.
type Progress struct {
	Layer       int   // the layer being loaded
	Done, Total int64 // bytes of weights, over the whole request
}

// Fragment is a maximal run of consecutive loaded layers of one model.
type Fragment struct {
	Model       string
	Layers      Range
	ModelLayers int  // layers of the whole model
	Embedding   bool // sessions may begin here, with tokens
	Head        bool // sessions may end here, with logits
	Width       int  // floats in one row of hidden state
	Vocab       int  // floats in one row of logits
	WeightBytes int64
	CacheBytes  int64
	Sessions    int // open sessions that use at least one of the layers
	Cells       int // cells of each layer
	CellsFree   int // the fewest free cells of any of the layers, reserve included
	Class       string
}

// SessionOptions describe a session to open.
type SessionOptions struct {
	Model  string
	Layers Range
	// Cells is the number of positions to reserve: the prompt and as much of the
	// answer as is to have room for now (see Session.Grow). Required.
	Cells int
	// Rescue allows use of the cells that are kept for rescues.
	Rescue bool
	// States makes a range that ends with the last layer return hidden states
	// after the model's last norm, instead of logits.
	States bool
}

// Want selects the rows that a Step returns.
type Want int

const (
	WantNone Want = iota // nothing: only fill the cache
	WantLast             // the last row
	WantAll              // every row
)

// Input is a run of consecutive positions.
type Input struct {
	// Position of the first row; must equal Held().
	Position int
	// Tokens, when the range begins with layer 0.
	Tokens []int32
	// Hidden states otherwise, rows x width, row by row. Not changed, and not
	// kept after Step returns.
	Hidden []float32
	// Want selects the rows returned. For a range that ends with the model's
	// last layer they are logits, unless SessionOptions.States asks for hidden
	// states, as all other ranges return.
	Want Want
	// Background says that nobody waits for the rows: they are computed when there is
	// nothing else to do, and where others are about to want the engine again, few at
	// a time.
	Background bool
}

// Output of a Step. The slices belong to the caller.
type Output struct {
	Rows    int           // rows returned: 0, 1 or all, as wanted
	Hidden  []float32     // Rows x width, unless the range ends with the last layer
	Logits  []float32     // Rows x vocabulary, if it does
	Queue   time.Duration // waiting for the computing goroutine
	Compute time.Duration // in the passes that had rows of this step
	Batch   int           // rows of all sessions in the last of these passes
}

// Memory in bytes, by kind.
type Memory struct {
	Budget  int64 // 0: no limit
	Weights int64
	Cache   int64
	Work    int64 // compute graphs and staging
}

// Used is the sum over all kinds.
func (m Memory) Used() int64 { return m.Weights + m.Cache + m.Work }

// Free is what the budget leaves, never negative; -1 without a budget.
func (m Memory) Free() int64 {
	if m.Budget == 0 {
		return -1
	}
	return max(0, m.Budget-m.Used())
}

// Stats are totals and moving averages.
type Stats struct {
	Passes   uint64        // forward passes computed
	Rows     uint64        // rows computed; one token through one range is one row
	Steps    uint64        // steps completed
	Computed time.Duration // time spent in passes
	Sessions int           // open now
	Waiting  int           // steps queued or being computed now
	Ranges   []RangeStats  // ordered by model and range
}

// RangeStats describe the passes of one range of one model.
type RangeStats struct {
	Model  string
	Layers Range
	Passes uint64
	Rows   uint64
	// Decode is the moving average duration of passes with one row per session.
	Decode time.Duration
	// PerRow is the moving average time per row in passes with more rows.
	PerRow time.Duration
	// Batch is the moving average of rows in decoding passes.
	Batch float64
}
