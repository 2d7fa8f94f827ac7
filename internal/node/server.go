package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hecate/internal/engine"
	"hecate/internal/stage"
	"hecate/pool"
)

// keepTime is how long a stage outlives its lost connection.
const keepTime = 30 * time.Second

// Server serves the stages of answers on an engine.
type Server struct {
	engine    engine.Engine
	exactness string
	process   string // names this process to gateways, by chance
	chaos     *chaos // nil: failures may not be armed
	gauge     *gauge
	keeper    *keeper
	ledger    ledger
	log       *slog.Logger
	words     *words // nil: none of the answers has a given shape
	changed   func() // told when a stage began or ended; nil: nobody is
}

// NewServer makes a server. allowChaos lets gateways arm failures.
func NewServer(e engine.Engine, exactness string, log *slog.Logger) *Server {
	return &Server{engine: e, exactness: exactness, process: rand.Text(), gauge: newGauge(), keeper: newKeeper(), log: log}
}

// Close frees the stages that wait for a reconnect.
func (s *Server) Close() { s.keeper.close() }

// Handle serves one session of the data plane: one stage of one answer.
func (s *Server) Handle(ctx context.Context, sess pool.Session) {
	s.gauge.opened()
	s.tell()
	defer s.tell()
	ctx, getUp := context.WithCancel(ctx)
	defer getUp()
	place, r, err := s.accept(ctx, sess, getUp)
	if err != nil {
		s.refuse(ctx, sess, err)
		return
	}
	err = s.serve(ctx, sess, r)
	switch {
	case ended(sess):
		s.keeper.drop(place, r)
		s.gauge.closed(nil)
	case sess.Err() == nil && ctx.Err() == nil: // the stage failed, not its connection
		s.keeper.drop(place, r)
		s.refuse(ctx, sess, err)
	default:
		s.log.Info("a stage lost its connection", "job", r.open.Session, "layers", fmt.Sprintf("%d-%d", r.open.First, r.open.Last), "kept", r.session.Held(), "because", loss(sess))
		s.part(place, r, sess)
		s.gauge.closed(nil)
	}
}

// loss says why a stage is left without a connection.
func loss(sess pool.Session) error {
	if err := sess.Err(); err != nil {
		return err
	}
	return errTakenOver
}

var errTakenOver = errors.New("its gateway took it over by another connection")

func (s *Server) tell() {
	if s.changed != nil {
		s.changed()
	}
}

// ended says that the gateway wants nothing more of this stage.
func ended(sess pool.Session) bool {
	var c *pool.CloseError
	return errors.As(sess.Err(), &c) && c.Remote && (c.Code == pool.CodeNormal || c.Code == pool.CodeCancelled)
}

// accept reads the Open, finds or begins the stage, and says yes. getUp is how a
// later connection of the same stage stops this one.
func (s *Server) accept(ctx context.Context, sess pool.Session, getUp context.CancelFunc) (*seat, *running, error) {
	b, err := sess.Recv(ctx)
	if err != nil {
		return nil, nil, err
	}
	o, err := stage.DecodeOpen(b)
	if err != nil {
		return nil, nil, &stage.Error{Code: stage.CodeBad, Message: err.Error()}
	}
	if s.gauge.isPaused() && !o.Resume {
		return nil, nil, &stage.Error{Code: stage.CodePaused, Message: "this node takes nothing new"}
	}
	f, err := s.chaos.arm(o.Chaos)
	if err != nil {
		return nil, nil, err
	}
	place, r, err := s.keeper.sit(ctx, keyOf(sess.Peer().Node, o), getUp)
	if err != nil {
		return nil, nil, err
	}
	if r != nil && !o.Resume {
		r.close()
		r = nil
	}
	if r != nil && !r.takes(o) {
		s.keeper.drop(place, r)
		return nil, nil, &stage.Error{Code: stage.CodeBad, Message: "this stage was begun as another kind: who draws tokens goes on doing so, and who gives states likewise"}
	}
	if r == nil {
		if r, err = s.begin(ctx, sess.Peer().Node, o); err != nil {
			s.keeper.drop(place, nil)
			return nil, nil, err
		}
	}
	r.accept(o, f)
	if err = r.grow(ctx, o.Cells); err == nil {
		err = s.welcome(ctx, sess, r)
	}
	if err != nil {
		s.part(place, r, sess)
		return nil, nil, err
	}
	return place, r, nil
}

// part leaves a stage whose connection broke. What it holds may be asked for once
// more, unless the gateway has said that it will not; nothing is not worth keeping.
func (s *Server) part(place *seat, r *running, sess pool.Session) {
	if ended(sess) || r.session.Held() == 0 {
		s.keeper.drop(place, r)
		return
	}
	s.keeper.keep(place, r)
}

// welcome says yes.
func (s *Server) welcome(ctx context.Context, sess pool.Session, r *running) error {
	opened, err := stage.Opened{Held: r.session.Held(), Cells: r.cells, Width: r.width, Exactness: s.exactness, MaxRows: stage.MaxRows, Process: s.process}.Encode()
	if err != nil {
		return err
	}
	return sess.Send(ctx, opened)
}

// serve answers steps until the session ends or one fails.
func (s *Server) serve(ctx context.Context, sess pool.Session, r *running) error {
	var buf []byte
	for {
		b, err := sess.Recv(ctx)
		if err != nil {
			return err
		}
		buf, err = s.answer(ctx, r, b, buf[:0])
		sess.Recycle(b)
		if err != nil {
			return err
		}
		if err := sess.Send(ctx, buf); err != nil {
			return err
		}
	}
}

// answer does what a message asks for and appends what is to be said.
func (s *Server) answer(ctx context.Context, r *running, b, out []byte) ([]byte, error) {
	switch stage.KindOf(b) {
	case stage.KindTruncate:
		t, err := stage.DecodeTruncate(b)
		if err == nil {
			err = r.session.Truncate(t.Position)
		}
		return stage.Result{Kind: stage.KindDone, Position: t.Position}.Append(out), err
	case stage.KindGrow:
		g, err := stage.DecodeGrow(b)
		if err != nil {
			return nil, &stage.Error{Code: stage.CodeBad, Message: err.Error()}
		}
		err = r.grow(ctx, g.Cells)
		s.tell()
		return stage.Grown{Cells: r.cells}.Append(out), err
	case stage.KindStep:
		st, err := stage.DecodeStep(b)
		if err != nil {
			return nil, &stage.Error{Code: stage.CodeBad, Message: err.Error()}
		}
		res, err := r.step(ctx, st)
		if err == nil {
			s.gauge.stepped(r.open, res)
		}
		return res.Append(out), err
	}
	return nil, &stage.Error{Code: stage.CodeBad, Message: fmt.Sprintf("an unexpected message: %s", stage.KindOf(b))}
}

// refuse tells the gateway why and ends the session.
func (s *Server) refuse(ctx context.Context, sess pool.Session, err error) {
	s.gauge.closed(err)
	if ctx.Err() != nil || sess.Err() != nil {
		return
	}
	e := refusal(err)
	s.log.Warn("stage refused", "because", e.Message, "code", string(e.Code))
	b, err := e.Encode()
	if err == nil {
		_ = sess.Send(ctx, b)
	}
	sess.Close(pool.CodeNormal)
}
