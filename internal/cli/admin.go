package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hecate/internal/control/admin"
)

// administered is how a command of an operator finds its gateway: by the admin
// token in a data folder, over the socket beside it or over TLS.
type administered struct {
	Data string `help:"Data folder of a gateway on this machine, or a copy of its admin.json for one elsewhere." default:"${data}" placeholder:"DIR" type:"path"`
	JSON bool   `help:"Print as JSON."`
}

func (a administered) open() (*admin.Client, error) { return admin.Open(a.Data) }

// said prints what was done to what, once it is done.
func (a administered) said(c console, what, id string) error {
	if a.JSON {
		return printJSON(c.out, map[string]string{"done": what, "id": id})
	}
	_, err := fmt.Fprintf(c.out, "%s: %s\n", id, what)
	return err
}

// listedID refuses what cannot be the id of something in a list.
func listedID(what, id string) error {
	if strings.Trim(id, "0123456789abcdef") != "" || id == "" {
		return usage("%q is no id: hecate %s ls lists them", id, what)
	}
	return nil
}

// act does one thing to one named thing.
func (a administered) act(ctx context.Context, c console, what, id string, do func(*admin.Client, context.Context, string) error) error {
	client, err := a.open()
	if err != nil {
		return err
	}
	if err := do(client, ctx, id); err != nil {
		return err
	}
	return a.said(c, what, id)
}

// listed prints what a gateway lists: as JSON, or as a table with a heading.
func listed[T any](ctx context.Context, c console, a administered, list func(*admin.Client, context.Context) ([]T, error), heading string, row func(T) string) error {
	client, err := a.open()
	if err != nil {
		return err
	}
	rows, err := list(client, ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		if rows == nil {
			rows = []T{}
		}
		return printJSON(c.out, rows)
	}
	t := table(c.out)
	fmt.Fprintln(t, heading)
	for _, r := range rows {
		fmt.Fprintln(t, row(r))
	}
	return t.Flush()
}

// until prints when something ends.
func until(t time.Time) string {
	switch left := time.Until(t); {
	case t.IsZero():
		return "never"
	case left < 0:
		return "expired"
	default:
		return "in " + roughly(left)
	}
}

// roughly is a time in its largest unit that still tells something.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d >= time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return "less than a minute"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
