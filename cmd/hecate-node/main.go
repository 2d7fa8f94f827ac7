// Command hecate-node is the worker alone, with the swarm's life-cycle simulator.
package main

import (
	"os"

	"hecate/internal/cli"
)

func main() { os.Exit(cli.NodeMain("hecate-node", os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
