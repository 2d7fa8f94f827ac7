package event

import "log/slog"

// Kind names what happened. The names stand in the API and in metrics.
type Kind string

const (
	NodeJoined   Kind = "node_joined"   // heard for the first time, or again after it had left
	NodeSuspect  Kind = "node_suspect"  // missed reports
	NodeDied     Kind = "node_died"     // silent for too long, or its connections were reset
	NodeReturned Kind = "node_returned" // heard again
	NodeLeft     Kind = "node_left"     // said goodbye
	NodeRemoved  Kind = "node_removed"  // by an operator
	NodeGhost    Kind = "node_ghost"    // an old start of it still reports
	NodeSteered  Kind = "node_steered"  // an operator paused it, resumed it, and so on

	LayersLoaded     Kind = "layers_loaded"     // a node holds layers that it did not hold before
	LayersDropped    Kind = "layers_dropped"    // and the other way round
	TransferStarted  Kind = "transfer_started"  // weights are on their way to a node
	TransferFinished Kind = "transfer_finished" // they are there
	TransferFailed   Kind = "transfer_failed"   // it is tried again

	PlanTaken    Kind = "plan_taken"      // this gateway follows a new plan
	ModelReady   Kind = "model_ready"     // some copy can be asked
	ModelUnready Kind = "model_unready"   // none can
	CopyLive     Kind = "copy_live"       // one planned copy is whole
	CopyBroken   Kind = "copy_broken"     // one is not
	Rescued      Kind = "answer_rescued"  // a failure was survived
	Lost         Kind = "answer_lost"     // no way to go on
	GaveWay      Kind = "answer_gave_way" // it found no room to grow, and waits for some
	Degraded     Kind = "answer_degraded" // a fallback model answers
	Refused      Kind = "request_refused"

	PoolRoutine Kind = "pool_routine" // connections are made, refreshed, drained
	PoolChange  Kind = "pool_change"  // a generation, a map, a setting
	PoolTrouble Kind = "pool_trouble" // a connection was lost or could not be made
)

// levels says how loud each kind is: debug is routine, info is worth a line,
// warn is a failure that was survived or is being dealt with, error cost an
// answer or stops a model.
var levels = map[Kind]slog.Level{
	NodeJoined: slog.LevelInfo, NodeSuspect: slog.LevelWarn, NodeDied: slog.LevelWarn, NodeReturned: slog.LevelInfo,
	NodeLeft: slog.LevelInfo, NodeRemoved: slog.LevelInfo, NodeGhost: slog.LevelWarn, NodeSteered: slog.LevelInfo,
	LayersLoaded: slog.LevelInfo, LayersDropped: slog.LevelInfo,
	TransferStarted: slog.LevelInfo, TransferFinished: slog.LevelInfo, TransferFailed: slog.LevelWarn,
	PlanTaken: slog.LevelInfo, ModelReady: slog.LevelInfo, ModelUnready: slog.LevelError,
	CopyLive: slog.LevelInfo, CopyBroken: slog.LevelWarn,
	Rescued: slog.LevelWarn, Lost: slog.LevelError, GaveWay: slog.LevelInfo, Degraded: slog.LevelWarn, Refused: slog.LevelWarn,
	PoolRoutine: slog.LevelDebug, PoolChange: slog.LevelDebug, PoolTrouble: slog.LevelDebug,
}

// Kinds lists all there are, in no order.
func Kinds() []Kind {
	out := make([]Kind, 0, len(levels))
	for k := range levels {
		out = append(out, k)
	}
	return out
}

// Level is how loud events of the kind are.
func (k Kind) Level() slog.Level {
	l, ok := levels[k]
	if !ok {
		panic("BUG: no such kind of event: " + string(k))
	}
	return l
}
