// Command hecate is the whole of HECATE in one binary: gateway, worker, client
// and administration. Run it without arguments for the list of commands.
package main

import (
	"os"

	"hecate/internal/cli"
)

func main() { os.Exit(cli.Main("hecate", os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
