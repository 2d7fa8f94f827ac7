// Package cli is the command tree: it reads flags, environment and the
// configuration file, wires the rooms below, and prints. Decisions live below.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/willabides/kongplete"
)

// Exit codes of every command.
const (
	exitFine  = 0
	exitFail  = 1 // it did not hold
	exitUsage = 2 // the command line, or a file that it names, is wrong
)

// UsageError is a mistake in the command line or in a file that it names.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// console is what commands read from and write to.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// root is the grammar of hecate.
type root struct {
	Config kong.ConfigFlag `help:"TOML file with settings; flags and HECATE_ environment variables win over it." placeholder:"FILE"`

	Up       upCmd       `cmd:"" help:"Start a whole swarm on this machine: gateway, node processes, the built-in demo model."`
	Serve    serveCmd    `cmd:"" help:"Run a gateway that nodes on other machines join."`
	Chat     chatCmd     `cmd:"" help:"Talk to a model of the swarm."`
	Status   statusCmd   `cmd:"" help:"Show the swarm as it is now."`
	Top      topCmd      `cmd:"" help:"Watch the swarm live in the terminal."`
	Node     nodeCmd     `cmd:"" help:"Workers: run one, list, pause, resume, drain, remove."`
	Token    tokenCmd    `cmd:"" help:"Join tokens: create, list, revoke."`
	Key      keyCmd      `cmd:"" help:"API keys: create, list, revoke."`
	Engine   engineCmd   `cmd:"" help:"Servers of whole models that somebody else runs: add, list, remove."`
	Doctor   doctorCmd   `cmd:"" help:"Check what this machine needs to be part of a swarm, and say what to do."`
	Model    modelCmd    `cmd:"" help:"Models: list, inspect."`
	Plan     planCmd     `cmd:"" help:"Show which node would hold which layers, and why."`
	Route    routeCmd    `cmd:"" help:"Evaluate and explain routes."`
	Bench    benchCmd    `cmd:"" help:"Measure, with ratios against named alternatives in the same run."`
	SwarmSim swarmSimCmd `cmd:"" name:"swarm-sim" help:"Run a swarm's whole life cycle in memory."`
	Sim      simCmd      `cmd:"" help:"Simulate a whole swarm under load, one routing policy beside the other."`

	Chaos      chaosCmd      `cmd:"" help:"Rehearse failures: arm one in a node, or stand between two programs as a bad network."`
	Completion completionCmd `cmd:"" help:"Print what a shell needs to complete commands and flags."`
	Version    versionCmd    `cmd:"" help:"Print the version and the kernels in this binary."`
}

// nodeRoot is the grammar of hecate-node.
type nodeRoot struct {
	Config kong.ConfigFlag `help:"TOML file with settings." placeholder:"FILE"`

	Run      nodeRunCmd  `cmd:"" default:"withargs" help:"Run a worker (the default)."`
	SwarmSim swarmSimCmd `cmd:"" name:"swarm-sim" help:"Run a swarm's whole life cycle in memory."`
	Version  versionCmd  `cmd:"" help:"Print the version and the kernels in this binary."`
}

// Main runs hecate and gives the exit code.
func Main(name string, args []string, in io.Reader, out, err io.Writer) int {
	return run(name, "The machines you own answer as one, and an answer survives a power cut.", &root{}, args, console{in, out, err})
}

// NodeMain runs hecate-node and gives the exit code.
func NodeMain(name string, args []string, in io.Reader, out, err io.Writer) int {
	return run(name, "A worker of a HECATE swarm.", &nodeRoot{}, args, console{in, out, err})
}

func run(name, about string, grammar any, args []string, c console) (code int) {
	if len(args) == 0 && name == "hecate" {
		args = []string{"--help"}
	}
	exit := -1
	parser := newParser(name, about, grammar, c, func(n int) { exit = n })
	defer func() {
		if exit >= 0 { // --help was printed, and parsing went on
			code = exit
		}
	}()
	if kongplete.Complete(parser, kongplete.WithExitFunc(func(int) { exit = exitFine })); exit >= 0 {
		return exit // a shell asked for completions
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintf(c.err, "%s: %v\n", name, err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	return conclude(name, parsed.Run(c), c)
}

// newParser reads command lines of a grammar. exit is called when --help was
// printed.
func newParser(name, about string, grammar any, c console, exit func(int)) *kong.Kong {
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(about), kong.UsageOnError(),
		kong.Writers(c.out, c.err), kong.Exit(exit),
		kong.DefaultEnvars("HECATE"), kong.Configuration(tomlFile), kong.Vars{"data": defaultDataDir(), "nodedata": filepath.Join(defaultDataDir(), "node")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic("BUG: the command tree is malformed: " + err.Error())
	}
	return parser
}

// Check says whether hecate would take a command line, without running it:
// nil, or what is wrong with its commands, flags and values. What commands
// find out only when they run, such as whether a file exists, is not looked at.
func Check(args []string) error {
	_, err := newParser("hecate", "", &root{}, console{nil, io.Discard, io.Discard}, func(int) {}).Parse(args)
	return err
}

// conclude prints an error once and turns it into the exit code.
func conclude(name string, err error, c console) int {
	var wrong *UsageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errQuiet):
		return exitFail
	case errors.As(err, &wrong):
		fmt.Fprintf(c.err, "%s: %v\n", name, err)
		return exitUsage
	default:
		fmt.Fprintf(c.err, "%s: %v\n", name, err)
		return exitFail
	}
}

// errQuiet fails without a word: the command said already what there is to say.
var errQuiet = errors.New("it did not hold")
