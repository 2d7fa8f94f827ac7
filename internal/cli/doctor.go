package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hecate/internal/control/admin"
	"hecate/internal/control/doctor"
)

type doctorCmd struct {
	administered
	Join      string   `help:"Join token whose addresses are tried." placeholder:"TOKEN"`
	Gateway   []string `help:"More gateway addresses to try, host:port." placeholder:"ADDR"`
	NoNetwork bool     `help:"Send nothing to other machines."`
}

// Run looks at this machine, and asks the gateway of the data folder, if one
// runs there, what it reaches of its nodes. A check that failed is exit code 1.
func (d *doctorCmd) Run(ctx context.Context, c console) error {
	findings := doctor.Run(ctx, doctor.Config{Dir: d.Data, Token: d.Join, Gateways: d.Gateway, NoNetwork: d.NoNetwork})
	if !d.NoNetwork {
		reach, err := d.reach(ctx)
		if err != nil {
			return err
		}
		findings = append(findings, reach...)
	}
	if d.JSON {
		if err := printJSON(c.out, findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			fmt.Fprintln(c.out, f)
		}
	}
	if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Status == doctor.Fail }) {
		return errQuiet
	}
	return nil
}

func (d *doctorCmd) reach(ctx context.Context) ([]doctor.Finding, error) {
	client, err := d.open()
	if errors.Is(err, admin.ErrNotRunning) {
		return nil, nil // a node's folder, or an empty one
	}
	if err != nil {
		return nil, err
	}
	found, err := client.Reach(ctx)
	if errors.Is(err, admin.ErrNotRunning) {
		return []doctor.Finding{{Check: "gateway", Status: doctor.Warn, Detail: "no gateway runs on " + d.Data, Do: "start it with hecate serve"}}, nil
	}
	return found, err
}
