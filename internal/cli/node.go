package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/plane"
	"hecate/internal/node"
	"hecate/swarm"
)

// bytesFlag is a size such as 6GiB or 512MB.
type bytesFlag int64

// UnmarshalText reads a size.
func (b *bytesFlag) UnmarshalText(text []byte) error {
	n, err := swarm.ParseBytes(string(text))
	if err != nil {
		return err
	}
	*b = bytesFlag(n)
	return nil
}

type nodeCmd struct {
	Run    nodeRunCmd    `cmd:"" default:"withargs" help:"Run a worker (the default)."`
	Ls     nodeLsCmd     `cmd:"" help:"List the swarm's nodes."`
	Pause  nodePauseCmd  `cmd:"" help:"Let a node finish what runs and take nothing new; it keeps its layers."`
	Resume nodeResumeCmd `cmd:"" help:"End a pause, or fill a drained node again."`
	Drain  nodeDrainCmd  `cmd:"" help:"Empty a node as fast as others take over; it stays a member."`
	Remove nodeRemoveCmd `cmd:"" help:"Drain a node, then take it out of the swarm; it comes back with a token only."`
}

type nodeRunCmd struct {
	Join          string        `help:"Join token, needed the first time." placeholder:"TOKEN"`
	Gateway       []string      `help:"More gateway addresses to try, host:port." placeholder:"ADDR"`
	Name          string        `help:"Id in the swarm; the host's name when absent." placeholder:"ID"`
	Memory        bytesFlag     `help:"What weights and KV cache may take; the larger part of the free memory when absent." placeholder:"SIZE"`
	Threads       int           `help:"Threads that compute." default:"1"`
	Score         float64       `help:"Speed beside other nodes, 1 is one thread of a common server; measured at the first start when absent." placeholder:"NUMBER"`
	Listen        string        `help:"Address of the data plane." default:":0"`
	Data          string        `help:"Data folder." default:"${nodedata}" type:"path"`
	FetchRate     bytesFlag     `help:"Bytes per second that weights may take, coming in and going to neighbours each; unbounded when absent." placeholder:"SIZE"`
	WeightsListen string        `help:"Address where neighbours fetch weights; the host of --listen and a free port when absent." placeholder:"ADDR"`
	KeepWeights   time.Duration `help:"How long weights stay on disk after the plan stopped giving them to this node." default:"1h"`
	SharedStore   string        `help:"The gateway's store of models, on this machine: weights are read there instead of fetched." hidden:"" type:"path" placeholder:"DIR"`
	AllowChaos    bool          `help:"Let gateways make this process fail, to rehearse failures."`
	Leash         bool          `help:"End when standard input does." hidden:""`
}

// check finds what is wrong before a token is used.
func (n *nodeRunCmd) check() error {
	var name, token, weights error
	if n.Name != "" {
		if err := control.ValidateNodeName(n.Name); err != nil {
			name = usage("--name: %w", err)
		}
	}
	if n.Join != "" {
		if _, err := enrol.ParseToken(n.Join); err != nil {
			token = usage("--join: %w", err)
		}
	}
	if n.WeightsListen != "" {
		weights = address("--weights-listen", n.WeightsListen)
	}
	if n.Score < 0 || math.IsNaN(n.Score) || math.IsInf(n.Score, 0) {
		return usage("--score is %v, want a number above 0", n.Score)
	}
	return first(name, token, threads(n.Threads), notBelow("--keep-weights", n.KeepWeights, true),
		address("--listen", n.Listen), weights, each("--gateway", n.Gateway, address))
}

// Run works until it is told to stop.
func (n *nodeRunCmd) Run(ctx context.Context, c console) error {
	if err := n.check(); err != nil {
		return err
	}
	if n.Leash {
		leashed, end := context.WithCancel(ctx)
		defer end()
		go func() {
			_, _ = io.Copy(io.Discard, c.in)
			end()
		}()
		ctx = leashed
	}
	if n.Memory == 0 {
		free, err := node.FreeMemory()
		if err != nil {
			return fmt.Errorf("find out how much memory is free: %w; say it with --memory", err)
		}
		n.Memory = bytesFlag(free)
	}
	log := logger(c.err, slog.LevelInfo)
	node.WarnSlowKernels(log)
	err := node.Run(ctx, node.Config{
		Data: filepath.Clean(n.Data), Name: n.Name, Token: n.Join, Gateways: n.Gateway, Listen: n.Listen,
		Memory: int64(n.Memory), Threads: n.Threads, Score: n.Score, AllowChaos: n.AllowChaos, Log: log,
		FetchRate: int64(n.FetchRate), WeightsListen: n.WeightsListen, KeepWeights: n.KeepWeights, SharedStore: n.SharedStore,
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if errors.Is(err, plane.ErrFolderInUse) {
		return fmt.Errorf("%w: stop the other hecate, or choose another folder with --data", err)
	}
	return err
}
