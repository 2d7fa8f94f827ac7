package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"hecate/internal/control/admin"
	"hecate/internal/control/keys"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key; it is shown once."`
	Ls     keyLsCmd     `cmd:"" help:"List the API keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Make an API key worthless within a moment."`
}

type keyCreateCmd struct {
	administered
	Life       time.Duration `help:"How long it is good; for ever when absent."`
	Note       string        `help:"What it is for, for people."`
	Rate       int           `help:"Requests per minute that it allows; any number when absent." placeholder:"N"`
	Concurrent int           `help:"Requests at the same time that it allows; any number when absent." placeholder:"N"`
}

// Run makes a key and prints it.
func (k *keyCreateCmd) Run(ctx context.Context, c console) error {
	if k.Life < 0 {
		return usage("--life is %s, want more than 0", k.Life)
	}
	if k.Rate < 0 || k.Rate > keys.MaxRate || k.Concurrent < 0 || k.Concurrent > keys.MaxRate {
		return usage("--rate and --concurrent are %d and %d, want 0 (no limit) to %d", k.Rate, k.Concurrent, keys.MaxRate)
	}
	client, err := k.open()
	if err != nil {
		return err
	}
	made, err := client.CreateKey(ctx, keys.Options{Life: k.Life, Note: k.Note, RequestsPerMinute: k.Rate, Concurrent: k.Concurrent})
	if err != nil {
		return err
	}
	if k.JSON {
		return printJSON(c.out, made)
	}
	_, err = fmt.Fprintln(c.out, made.Key)
	return err
}

type keyLsCmd struct{ administered }

// Run lists keys, without their secrets.
func (k *keyLsCmd) Run(ctx context.Context, c console) error {
	return listed(ctx, c, k.administered, (*admin.Client).Keys, "KEY\tCREATED\tEXPIRES\tPER MINUTE\tAT ONCE\tNOTE", func(r keys.Record) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", r.ID, r.Created.Format(time.DateOnly), until(r.Expires), limit(r.RequestsPerMinute), limit(r.Concurrent), orDash(r.Note))
	})
}

func limit(n int) string {
	if n == 0 {
		return "any"
	}
	return strconv.Itoa(n)
}

type keyRevokeCmd struct {
	administered
	ID string `arg:"" help:"The key's id, from hecate key ls."`
}

// Run revokes a key.
func (k *keyRevokeCmd) Run(ctx context.Context, c console) error {
	return k.act(ctx, c, "revoked", k.ID, (*admin.Client).RevokeKey)
}
