package cli

import (
	"context"
	"fmt"
	"time"

	"hecate/internal/control/admin"
	"hecate/internal/control/enrol"
)

type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a join token; it is shown once."`
	Ls     tokenLsCmd     `cmd:"" help:"List the join tokens."`
	Revoke tokenRevokeCmd `cmd:"" help:"Make a join token worthless; machines that it let in stay."`
}

type tokenCreateCmd struct {
	administered
	Uses    int           `help:"How many machines it lets in." default:"1"`
	Life    time.Duration `help:"How long it is good." default:"24h"`
	Note    string        `help:"What it is for, for people."`
	Address []string      `help:"Addresses of the gateway to put into it, host:port; what the gateway advertises when absent." placeholder:"ADDR"`
}

// Run makes a token and prints it.
func (t *tokenCreateCmd) Run(ctx context.Context, c console) error {
	if t.Uses < 1 || t.Uses > maxTokenUses {
		return usage("--uses is %d, want 1 to %d", t.Uses, maxTokenUses)
	}
	if t.Life <= 0 {
		return usage("--life is %s, want more than 0", t.Life)
	}
	client, err := t.open()
	if err != nil {
		return err
	}
	made, err := client.CreateToken(ctx, admin.TokenRequest{Addresses: t.Address, Uses: t.Uses, Life: t.Life, Note: t.Note})
	if err != nil {
		return err
	}
	if t.JSON {
		return printJSON(c.out, made)
	}
	_, err = fmt.Fprintln(c.out, made.Token)
	return err
}

type tokenLsCmd struct{ administered }

// Run lists tokens, without their secrets.
func (t *tokenLsCmd) Run(ctx context.Context, c console) error {
	return listed(ctx, c, t.administered, (*admin.Client).Tokens, "TOKEN\tUSED\tEXPIRES\tNOTE", func(r enrol.TokenRecord) string {
		return fmt.Sprintf("%s\t%d of %d\t%s\t%s", r.ID, r.Used, r.Uses, until(r.Expires), orDash(r.Note))
	})
}

type tokenRevokeCmd struct {
	administered
	ID string `arg:"" help:"The token's id, from hecate token ls."`
}

// Run revokes a token.
func (t *tokenRevokeCmd) Run(ctx context.Context, c console) error {
	if err := listedID("token", t.ID); err != nil {
		return err
	}
	return t.act(ctx, c, "revoked", t.ID, (*admin.Client).RevokeToken)
}
