package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"hecate/pool"
)

// pool prints the data plane once.
func (s *statusCmd) pool(ctx context.Context, c console) error {
	var snap pool.Snapshot
	if err := s.get(ctx, "/v1/pool", &snap); err != nil {
		return err
	}
	if s.JSON {
		return printJSON(c.out, snap)
	}
	printPool(c.out, snap)
	return nil
}

func printPool(w io.Writer, s pool.Snapshot) {
	g := s.Generation
	fmt.Fprintf(w, "generation %d active for %s, map revision %d", g.Active, g.ActiveAge.Round(time.Second), g.MapRevision)
	if g.Pending != 0 {
		fmt.Fprintf(w, "; generation %d warms up for %s and lacks %d writers", g.Pending, g.PendingAge.Round(time.Second), g.WriterDeficit)
	}
	fmt.Fprint(w, "\n\n")
	t := table(w)
	fmt.Fprintln(t, "GROUP\tFAMILY\tREADY\tWRITERS\tFLOOR\tOWED\tSESSIONS\tROUND TRIP\tHEALTH")
	for i := range s.Groups {
		x := &s.Groups[i]
		fmt.Fprintf(t, "%s\t%s\t%t\t%s\t%d of %d\t%d\t%d\t%s\t%s\n", x.Group, x.Family, x.Ready, countsOf(x.Contours),
			x.FloorCurrent, x.FloorTarget, x.Demand, x.Sessions, roundTripOf(s.Writers, x), countsOf(x.Health))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\nsessions: %d open, %d opened; closed: %s\n", s.SessionsOpen, s.SessionsOpened, countsOf(s.SessionsClosed))
	fmt.Fprintf(w, "writers lost: %s\nframes dropped: %s\npings: %d sent, %d missed\nnodes suspected: %s\n", countsOf(s.WriterLosses), countsOf(s.Drops), s.PingsSent, s.PingsMissed, countsOf(s.Probes))
}

// countsOf prints what is not zero, "none" when all is.
func countsOf(counts map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func roundTripOf(writers []pool.WriterSnapshot, g *pool.GroupSnapshot) string {
	var worst time.Duration
	for _, w := range writers {
		if w.Group == g.Group && w.Family == g.Family {
			worst = max(worst, w.RoundTrip)
		}
	}
	if worst == 0 {
		return "?"
	}
	return worst.Round(time.Microsecond).String()
}
