// Command write makes a small model with random weights and a chat template that
// knows tools, for checks of clients: `go run hecate/internal/engine/randmodel/write FILE`.
package main

import (
	"fmt"
	"os"

	"hecate/internal/engine/randmodel"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FILE")
		os.Exit(2)
	}
	if err := randmodel.WriteFile(os.Args[1], randmodel.Caller(1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
