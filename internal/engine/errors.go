package engine

import (
	"errors"
	"fmt"

	"hecate/internal/engine/arch"
)

// Errors that callers decide on. The typed errors below match them with
// errors.Is and carry the numbers.
var (
	// ErrNoEngine: this binary was built without the kernels.
	ErrNoEngine = errors.New("engine: built without the kernels (tag noengine or no cgo)")
	// ErrClosed: the engine or the session was closed.
	ErrClosed = errors.New("engine: closed")
	// ErrNoCells: too few free cache cells.
	ErrNoCells = errors.New("engine: no free cache cells")
	// ErrOverBudget: the memory budget does not allow it.
	ErrOverBudget = errors.New("engine: over the memory budget")
	// ErrLayerNotHeld: a layer of the range is not loaded.
	ErrLayerNotHeld = errors.New("engine: layer not held")
	// ErrInUse: open sessions need it.
	ErrInUse = errors.New("engine: in use")
	// ErrPosition: a step does not continue where the session ends.
	ErrPosition = errors.New("engine: wrong position")
	// ErrInput: a step whose rows do not fit its session.
	ErrInput = errors.New("engine: bad input")
	// ErrNotFinite: a result was NaN or infinite.
	ErrNotFinite = errors.New("engine: result is not finite")
	// ErrUnsupported: no adapter implements this model.
	ErrUnsupported = arch.ErrUnsupported
	// ErrModelMismatch: a file is of another model than those loaded under the
	// same name.
	ErrModelMismatch = errors.New("engine: file is of another model")
	// ErrKernel: the kernels reported or raised a failure.
	ErrKernel = errors.New("engine: kernel failure")
)

// CellsError is ErrNoCells with numbers.
type CellsError struct {
	Model      string
	Layer      int // the layer with the fewest free cells; -1: the session's own reserve
	Need, Free int // in cells; Free counts the largest run the caller may use
}

func (e *CellsError) Error() string {
	if e.Layer < 0 {
		return fmt.Sprintf("engine: step on %s needs %d cells, its session reserved %d (%d short)", e.Model, e.Need, e.Free, e.Need-e.Free)
	}
	return fmt.Sprintf("engine: session on %s needs %d cells, layer %d has %d free (%d short)", e.Model, e.Need, e.Layer, e.Free, e.Need-e.Free)
}

// Is makes errors.Is(err, ErrNoCells) true.
func (e *CellsError) Is(target error) bool { return target == ErrNoCells }

// BudgetError is ErrOverBudget with numbers, in bytes.
type BudgetError struct {
	What               string // what was to be allocated
	Need, Used, Budget int64
}

// Missing is the number of bytes by which the budget is too small.
func (e *BudgetError) Missing() int64 { return e.Used + e.Need - e.Budget }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("engine: %s needs %d bytes, %d of the budget of %d are used: %d bytes are missing", e.What, e.Need, e.Used, e.Budget, e.Missing())
}

// Is makes errors.Is(err, ErrOverBudget) true.
func (e *BudgetError) Is(target error) bool { return target == ErrOverBudget }

// LayerError is ErrLayerNotHeld with the layer.
type LayerError struct {
	Model string
	Layer int
}

func (e *LayerError) Error() string {
	return fmt.Sprintf("engine: layer %d of %s is not held", e.Layer, e.Model)
}

// Is makes errors.Is(err, ErrLayerNotHeld) true.
func (e *LayerError) Is(target error) bool { return target == ErrLayerNotHeld }

// PositionError is ErrPosition with the positions.
type PositionError struct{ Got, Held int }

func (e *PositionError) Error() string {
	return fmt.Sprintf("engine: step at position %d, but the session holds %d", e.Got, e.Held)
}

// Is makes errors.Is(err, ErrPosition) true.
func (e *PositionError) Is(target error) bool { return target == ErrPosition }

// NotFiniteError is ErrNotFinite with the place.
type NotFiniteError struct {
	Model    string
	Layers   Range
	Position int
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("engine: layers %d..%d of %s gave a value that is not finite at position %d", e.Layers.First, e.Layers.Last, e.Model, e.Position)
}

// Is makes errors.Is(err, ErrNotFinite) true.
func (e *NotFiniteError) Is(target error) bool { return target == ErrNotFinite }
