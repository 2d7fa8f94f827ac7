package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hecate/internal/control/enrol"
)

const (
	lowDisk   = 2 << 30   // a small model's shard does not fit below
	noDisk    = 256 << 20 // the control plane's own files need this
	lowMemory = 1 << 30
)

// interfaces lists the addresses under which others could reach this machine.
func interfaces() []Finding {
	all, err := net.Interfaces()
	if err != nil {
		return []Finding{{"interface", Warn, err.Error(), "give addresses with --listen and --gateway"}}
	}
	var out []Finding
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil || len(addrs) == 0 {
			continue
		}
		var text []string
		for _, a := range addrs {
			text = append(text, a.String())
		}
		out = append(out, well("interface", "%s has %s", i.Name, strings.Join(text, ", ")))
	}
	if len(out) == 0 {
		out = append(out, Finding{"interface", Warn, "this machine has no network but itself", "connect it, or use hecate up for a swarm on this machine alone"})
	}
	return out
}

// existing is the folder itself, or the one in which it would be made.
func existing(dir string) (string, error) {
	for {
		st, err := os.Stat(dir)
		switch up := filepath.Dir(dir); {
		case err == nil && !st.IsDir():
			return "", fmt.Errorf("%s is a file", dir)
		case errors.Is(err, fs.ErrNotExist) && up != dir:
			dir = up
		default:
			return dir, err
		}
	}
}

// disk checks that the data folder can be written, and has room.
func disk(dir string) []Finding {
	dir, err := existing(dir)
	if err != nil {
		return []Finding{{"disk", Fail, err.Error(), "choose another folder with --data"}}
	}
	probe, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return []Finding{{"disk", Fail, err.Error(), "make the folder writable, or choose another with --data"}}
	}
	err = errors.Join(probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return []Finding{{"disk", Fail, err.Error(), "free some room, or choose another folder with --data"}}
	}
	free, err := freeDisk(dir)
	if err != nil {
		return []Finding{{"disk", Warn, err.Error(), "look at the free room yourself"}}
	}
	f := well("disk", "%s has %s free", dir, bytesText(free))
	switch {
	case free < noDisk:
		f.Status, f.Do = Fail, "free some room: not even the swarm's own files fit"
	case free < lowDisk:
		f.Status, f.Do = Warn, "only small models will fit; free some room, or choose another folder with --data"
	}
	return []Finding{f}
}

// memory says what is free now.
func memory() []Finding {
	free, err := freeMemory("/proc/meminfo")
	if err != nil {
		return nil // not Linux; there is nothing to say rather than something wrong
	}
	f := well("memory", "%s available", bytesText(free))
	if free < lowMemory {
		f.Status, f.Do = Warn, "little is left for weights; close something, or give the node less with --memory"
	}
	return []Finding{f}
}

func freeMemory(path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("%s does not say what is available", path)
}

// enrolment checks the identity in a folder; nil when there is none.
func enrolment(dir string) (*enrol.Enrolment, []Finding) {
	e, err := enrol.Load(dir, enrol.Options{})
	if errors.Is(err, enrol.ErrNotEnrolled) {
		if _, err := os.Stat(filepath.Join(dir, "authority", "ca.key")); err == nil {
			return nil, []Finding{well("identity", "%s is the data folder of a gateway", dir)}
		}
		return nil, []Finding{{"identity", Warn, dir + " is not enrolled", "join it with hecate node --join TOKEN"}}
	}
	if err != nil {
		return nil, []Finding{{"identity", Fail, err.Error(), "repair it as said, or move the folder away and join anew with a token"}}
	}
	leaf := e.Credentials().Leaf()
	f := well("identity", "enrolled as %s in swarm %s, certificate good until %s",
		e.Name(), e.Credentials().ID().Swarm, leaf.NotAfter.Local().Format(time.DateTime))
	switch now := time.Now(); {
	case now.After(leaf.NotAfter):
		f.Status, f.Do = Warn, "it has expired; the node renews it when it next reaches a gateway"
	case now.Before(leaf.NotBefore):
		f.Status, f.Do = Fail, "it is not good yet, so this machine's clock is behind: set it"
	}
	return e, []Finding{f}
}

func tokenLife(t enrol.Token) Finding {
	f := well("token", "%s", t)
	if time.Now().After(t.Expires) {
		f.Status, f.Do = Fail, "it has expired, or this machine's clock is ahead: make a new one with hecate token create"
	}
	return f
}

func bytesText(n int64) string {
	const unit = 1 << 10
	value, suffix := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for value >= unit && i < len(suffix)-1 {
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %s", value, suffix[i])
}
