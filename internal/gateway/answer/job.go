package answer

import (
	"context"
	"log/slog"
	"time"

	"hecate/internal/sampling"
	"hecate/internal/stage"
	"hecate/swarm"
)

// A Job is what is to be answered.
type Job struct {
	ID        string // names the answer in logs and at the nodes; unique, at most 64 bytes
	Model     string
	Layers    int     // layers of the model; the route covers 0..Layers-1
	Width     int     // values of a hidden row; 0: as the first node says
	Prompt    []int32 // at least one token
	MaxTokens int     // generated tokens at most, at least 1
	Params    sampling.Params
	Chaos     []Chaos   // failures to inject, none in normal life
	States    Collector // of a job for States, which draws no tokens; nil: Next is what is asked
	StandIn   bool      // another model answers if this one cannot: nothing is lost by not beginning

	Caller
}

// Caller says whose an answer is, for the order in which requests get room. The
// zero value is nobody in particular.
type Caller struct {
	Key      string // names the API key; never the key itself
	Priority int    // higher has a larger share of the room, 0 is usual
	Request  string // names the request, when it has several answers
	Choices  int    // answers of the request, which get room together; 0 is 1
}

// Chaos names the stage (an index into the route) whose node shall fail: the one
// of the first route, or the substitute that was opened after so many rescues.
type Chaos struct {
	Stage   int
	AtToken int
	Action  string
	Rescues int // from this rescue on; 0: from the beginning
}

// Need is what the router must know to choose.
type Need struct {
	Job          string
	Model        string
	Layers       int
	PromptTokens int
	OutputTokens int  // at most
	StandIn      bool // another model answers if this one cannot be served

	Cells  int  // KV cells to reserve on each stage for now; 0: for prompt and output
	Next   int  // how many more it will ask for when those are used up; 0: it has all
	Begun  bool // it has run already: room that is kept for such answers is its own
	Rescue bool // it was interrupted by a failure: cells that are kept for rescues are its own

	Caller
}

// Room is how many KV cells a need reserves on each stage.
func (n Need) Room() int {
	if n.Cells > 0 {
		return n.Cells
	}
	return n.PromptTokens + n.OutputTokens
}

// A Grant is a route whose nodes have been reserved for one answer. Its holder
// releases it once, by Router.Release.
type Grant struct {
	Route swarm.Route
	Token uint64 // the router's own name for the reservation

	// Wanted closes when an answer that began before finds no room to grow: this one
	// is to give way between two tokens. nil: never.
	Wanted <-chan struct{}
}

// Failure says what went wrong at which node, so that the router can price it.
type Failure struct {
	Node string
	Kind FailureKind
	Err  error
}

// A FailureKind tells whether the node is gone, refuses, or is merely slow.
type FailureKind int

const (
	Gone     FailureKind = iota // connection lost, or declared dead
	Silent                      // a deadline passed
	Refused                     // it answered no, or what makes no sense; it lives
	Yielding                    // it is to give the layers up: no failure, nobody is to blame
)

func (k FailureKind) String() string { return [...]string{"gone", "silent", "refused", "yielding"}[k] }

// Progress tells the router how far an answer is, so that it can estimate which
// rescue resumes sooner.
type Progress struct {
	Tokens     int  // positions to bring a substitute to
	Again      bool // the same failure as in the call before: nobody is to be blamed twice
	StatesKept bool // the boundary states are at hand: a substitute replays its own layers only

	Warm     map[string]int // by node: positions that the failed stage's shadow holds there
	Standbys []uint64       // room that the rescue may spend: that of the shadow
}

// A Router chooses nodes. It owns plan, telemetry and reservations.
type Router interface {
	// Choose reserves the cheapest route now.
	Choose(ctx context.Context, n Need) (Grant, error)
	// Rescue replaces the failed node in a grant. On success the old grant is
	// spent and the new one stands; on error the old one still stands.
	Rescue(ctx context.Context, n Need, g Grant, failed []Failure, p Progress) (Grant, RescueKind, error)
	Release(g Grant)
	// Grow makes a grant reserve the need's room, on all its nodes or on none. After
	// an error, which wraps ErrFull if others have that room, it stands as it was.
	Grow(ctx context.Context, n Need, g Grant) error
	// Observe takes one finished step into the telemetry.
	Observe(node string, s Sample)
	// Around reserves another route, without a node that is alive but slow. The
	// first one's grant stands.
	Around(n Need, route swarm.Route, slow string) (Grant, error)
	// Patience is how long to wait for a step of rows over layers at a node.
	Patience(node string, rows, layers int) time.Duration
	// Usual is how long such a step usually takes; false while nobody knows.
	Usual(node string, rows, layers int) (time.Duration, bool)
	// Alive gives a context that ends when the node is declared dead.
	Alive(node string) context.Context
}

// A Queue is where an answer waits that found no room to grow.
type Queue interface {
	// GiveWay gives back what a grant reserved and waits for the need's room, before
	// all answers that have not begun. The new grant may have another route.
	// failed are nodes that had no room although the router believed so. On
	// error the grant stands for nothing, and is still to be released.
	GiveWay(ctx context.Context, n Need, g Grant, failed []Failure) (Grant, error)
}

// A RescueKind is how an answer went on.
type RescueKind string

const (
	Splice    RescueKind = "splice"    // substitutes hold the lost layers
	Copy      RescueKind = "copy"      // another whole copy took over
	Reconnect RescueKind = "reconnect" // the node lives and kept its state
	Reroute   RescueKind = "reroute"   // nothing had been sent yet
	Revival   RescueKind = "revival"   // the node itself came back, and was fed again
	Hedge     RescueKind = "hedge"     // nothing had been sent yet, and a second try was faster
	Again     RescueKind = "again"     // no rescue: a node had no room after all, and the answer waited for some
)

// A Sample is what one step took.
type Sample struct {
	Rows, Layers int
	Timing       stage.Timing
	Wall         time.Duration // from sending the step to having its answer
}

// A Session is one stage's conversation with its node; pool.Session fits.
type Session interface {
	Send(ctx context.Context, b []byte) error
	Recv(ctx context.Context) ([]byte, error)
	// Recycle gives a received message back to whoever allocated it.
	Recycle(b []byte)
	// End closes it: the node frees the state. underway says that a step is not
	// answered yet and need not be.
	End(underway bool)
	// Abandon drops it without telling the node to forget, so that a reconnect finds the state.
	Abandon()
}

// An Opener reaches nodes.
type Opener interface {
	// Open starts a session whose first message is opening. A rescue never waits
	// for a connection.
	Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error)
	// Reopen starts one with a node whose connection has just broken: over another,
	// or, when all broke, over the first that is made again. It waits until it is
	// known whether the node is still there. ErrNoConnection: it is not.
	Reopen(ctx context.Context, node string, opening []byte) (Session, error)
	// Suspect says that a node keeps an answer waiting for longer than usual. If it is
	// there no more, its sessions end soon, with ErrSilence. It never blocks.
	Suspect(node string)
}

// Limits bound recovery. Zero values mean the defaults.
type Limits struct {
	Chunk        int           // rows per prefill step; default 128
	Tries        int           // failed rescues of one token, and more within RescueTime; default 16
	RescueTime   time.Duration // how long one rescue may look for a way; default 20 s
	SessionBytes int64         // boundary states kept per answer; default 64 MiB
	OpenTime     time.Duration // for a node to accept a stage; default 2 s
	ShadeFrom    int           // tokens of context from which shadows are kept; default 256, below 0: never
	Portion      int           // generated tokens that room is reserved for at first; default 256
}

func (l Limits) withDefaults() Limits {
	def := Limits{Chunk: 128, Tries: 16, RescueTime: 20 * time.Second, SessionBytes: 64 << 20, OpenTime: 2 * time.Second, ShadeFrom: 256, Portion: 256}
	if l.Chunk <= 0 {
		l.Chunk = def.Chunk
	}
	if l.Tries <= 0 {
		l.Tries = def.Tries
	}
	if l.RescueTime <= 0 {
		l.RescueTime = def.RescueTime
	}
	if l.SessionBytes <= 0 {
		l.SessionBytes = def.SessionBytes
	}
	if l.OpenTime <= 0 {
		l.OpenTime = def.OpenTime
	}
	if l.ShadeFrom == 0 {
		l.ShadeFrom = def.ShadeFrom
	}
	if l.Portion <= 0 {
		l.Portion = def.Portion
	}
	return l
}

// Runner starts answers. Router and Opener are required.
type Runner struct {
	Router Router
	Queue  Queue // nil: an answer that finds no room to grow ends
	Opener Opener
	Limits Limits
	Budget *Budget // for boundary states over all answers; nil: unbounded
	// Yields says that a node is to give layers up that an answer uses: it goes on
	// elsewhere as soon as there is a way. nil: never.
	Yields func(node, model string, layers swarm.LayerRange) bool
	// Standbys is where shadows of long answers may be kept; nil: nowhere.
	Standbys Standbys
	Poison   *Poison     // remembers queries of death; nil: not remembered
	Events   func(Event) // told of every rescue and loss; must not block
	Tracer   Tracer      // nil: nobody wants to know
	Log      *slog.Logger

	hedges     hedges
	casualties casualties
	rivalry    rivalry
	trial      turn // of answers that compute what may have killed two nodes
}

// An Event is one step in the story of an answer.
type Event struct {
	Job      string
	Kind     string // "rescued", "lost", "gave way"
	Rescue   RescueKind
	Node     string // that failed
	Position int
	Replay   int           // positions that a stage had to compute again
	Gap      time.Duration // from asking for the token that was interrupted to having it, noticing included
	Err      error
}
