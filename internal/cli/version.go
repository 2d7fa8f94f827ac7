package cli

import (
	"fmt"
	"runtime/debug"

	"hecate/internal/engine"
)

type versionCmd struct{}

// Run prints what this binary is.
func (versionCmd) Run(c console) error {
	fmt.Fprintf(c.out, "hecate %s, kernels: %s\n", version(), engine.KernelName())
	return nil
}

// release is set when a release is built.
var release = ""

// version names the build: its release, or the commit it was made from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
