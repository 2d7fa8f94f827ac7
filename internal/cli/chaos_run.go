package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"hecate/internal/chaos"
	"hecate/internal/report"
)

type chaosRunCmd struct {
	where
	Script string `arg:"" help:"File of commands, one a line; - is standard input."`
}

// Help lists the commands.
func (*chaosRunCmd) Help() string {
	return `Commands, one a line; # begins a comment:
  kill NODE   stop NODE   continue NODE   flap NODE every 3s for 30s
  delay NODE 200ms [jitter 50ms]   loss NODE 0.05   throttle NODE 64KiB   drop NODE   partition NODE
  reset NODE   refuse NODE   heal NODE
  arm stage=1 at=20 action=kill|stop|drop [model=ID] [rescues=N] [also]
  wait 2s   expect CONDITION   await CONDITION within 30s
Conditions: [state] healthy|degraded|failed, node NAME alive|dead|restarted, rescues N (at least,
since the script began), lost N (at most). The script ends at the first command that fails, continues what it stopped and heals links.
The swarm must have been started with --allow-chaos.`
}

// Run plays the script.
func (r *chaosRunCmd) Run(ctx context.Context, c console) error {
	script, err := r.read(c.in)
	if err != nil {
		return &UsageError{err}
	}
	if r.URL, err = r.base(); err != nil { // once: the swarm is the same to the end
		return err
	}
	hands := &swarmHands{where: r.where, processes: map[string]*os.Process{}}
	var st report.Status
	if err := r.get(ctx, "/v1/swarm", &st); err != nil {
		return err
	}
	if !st.Chaos {
		return errors.New("this swarm was not started with --allow-chaos, so nothing is done to it: rehearse on one of your own, `hecate up --allow-chaos`")
	}
	began := time.Now()
	err = script.Run(ctx, hands, func(_ int, text string) {
		fmt.Fprintf(c.out, "%6.1fs  %s\n", time.Since(began).Seconds(), text)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%6.1fs  the script held\n", time.Since(began).Seconds())
	return nil
}

func (r *chaosRunCmd) read(in io.Reader) (*chaos.Script, error) {
	if r.Script == "-" {
		return chaos.Parse("standard input", in)
	}
	f, err := os.Open(r.Script)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	defer f.Close()
	return chaos.Parse(filepath.Clean(r.Script), f)
}
