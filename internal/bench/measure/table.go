package measure

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table collects rows and writes them in columns: names on the left, numbers
// aligned to the right.
type Table struct{ rows [][]string }

// NewTable starts a table; its first column is a name.
func NewTable(head ...string) *Table { return &Table{rows: [][]string{head}} }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the table.
func (t *Table) Print(w io.Writer) error {
	width := t.width()
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range t.rows {
		var line strings.Builder
		for i, c := range r {
			if i == 0 {
				c += strings.Repeat(" ", width-len([]rune(c)))
			}
			line.WriteString(c + "\t")
		}
		if _, err := fmt.Fprintln(out, line.String()); err != nil {
			return err
		}
	}
	return out.Flush()
}

// width is that of the first column.
func (t *Table) width() int {
	most := 0
	for _, r := range t.rows {
		if len(r) > 0 {
			most = max(most, len([]rune(r[0])))
		}
	}
	return most
}

// Print writes marks, verdicts and noise.
func (j Judgement) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, m := range j.Marks {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.Name, m.quantity(m.Value), m.wanted(), j.Verdicts[i])
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if j.Noise == nil {
		return nil
	}
	_, err := fmt.Fprintln(w, j.Noise)
	return err
}

// Short rounds a duration to three digits.
func Short(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
