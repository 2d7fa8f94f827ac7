package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"hecate/internal/chaos"
)

// signalProcess does an act of a script.
func signalProcess(p *os.Process, act chaos.Act) error {
	sig := map[chaos.Act]syscall.Signal{chaos.Kill: syscall.SIGKILL, chaos.Stop: syscall.SIGSTOP, chaos.Continue: syscall.SIGCONT}[act]
	if err := p.Signal(sig); errors.Is(err, os.ErrProcessDone) {
		return errors.New("it has ended already")
	} else if err != nil {
		return err
	}
	return nil
}

// isWorker says whether a command line is that of the worker with this name. A
// worker without a name on its command line goes by the host's or its
// configuration's: then being a worker must be enough.
func isWorker(args []string, node string) bool {
	if len(args) == 0 {
		return false
	}
	program := filepath.Base(args[0])
	if !strings.HasPrefix(program, "hecate") || program != "hecate-node" && !slices.Contains(args[1:], "node") {
		return false
	}
	for i, arg := range args {
		if name, ok := strings.CutPrefix(arg, "--name="); ok {
			return name == node
		}
		if arg == "--name" {
			return i+1 < len(args) && args[i+1] == node
		}
	}
	return true
}
