package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
	Life     time.Duration `help:"How long it is good; for ever when absent."`
	Note     string        `help:"What it is for, for people."`
	RPM      int           `help:"Requests per minute that it allows; any number when absent." name:"rpm" aliases:"rate" placeholder:"N"`
	TPM      int           `help:"Tokens per minute, of prompts and answers together; any number when absent." name:"tpm" placeholder:"N"`
	Parallel int           `help:"Requests at the same time that it allows; any number when absent." aliases:"concurrent" placeholder:"N"`
	Models   []string      `help:"Models that it is for; all when absent." placeholder:"MODEL"`
}

// Run makes a key and prints it.
func (k *keyCreateCmd) Run(ctx context.Context, c console) error {
	if k.Life < 0 {
		return usage("--life is %s, want more than 0", k.Life)
	}
	o := keys.Options{Life: k.Life, Note: k.Note, RequestsPerMinute: k.RPM, TokensPerMinute: k.TPM, Concurrent: k.Parallel, Models: k.Models}
	if err := o.Validate(); err != nil {
		return &UsageError{err}
	}
	client, err := k.open()
	if err != nil {
		return err
	}
	made, err := client.CreateKey(ctx, o)
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
	return listed(ctx, c, k.administered, (*admin.Client).Keys, "KEY\tCREATED\tEXPIRES\tPER MINUTE\tTOKENS\tAT ONCE\tMODELS\tNOTE", func(r keys.Record) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", r.ID, r.Created.Format(time.DateOnly), until(r.Expires), limit(r.RequestsPerMinute), limit(r.TokensPerMinute), limit(r.Concurrent), orAll(r.Models), orDash(r.Note))
	})
}

func orAll(models []string) string {
	if len(models) == 0 {
		return "all"
	}
	return strings.Join(models, ",")
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
	if err := listedID("key", k.ID); err != nil {
		return err
	}
	return k.act(ctx, c, "revoked", k.ID, (*admin.Client).RevokeKey)
}
