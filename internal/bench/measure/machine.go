package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine is where and when a run took place: numbers without it say little.
type Machine struct {
	At       time.Time `json:"at"`
	Go       string    `json:"go"`
	Platform string    `json:"platform"`
	CPU      string    `json:"cpu,omitempty"` // its own name, where the system tells
	Cores    int       `json:"cores"`
	Kernels  string    `json:"kernels,omitempty"`          // instruction set of the engine
	Load     string    `json:"load_at_start,omitempty"`    // the system's load average over one minute
	Release  string    `json:"operating_system,omitempty"` // kernel release
}

// ThisMachine describes the machine; kernels may be empty.
func ThisMachine(kernels string) Machine {
	return Machine{
		At: time.Now().Truncate(time.Second), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpuName(), Cores: runtime.NumCPU(), Kernels: kernels, Load: firstField("/proc/loadavg"),
		Release: firstField("/proc/sys/kernel/osrelease"),
	}
}

func (m Machine) String() string {
	s := fmt.Sprintf("%d cores", m.Cores)
	if m.CPU != "" {
		s += " of " + m.CPU
	}
	s += fmt.Sprintf(", %s, %s", m.Platform, m.Go)
	if m.Kernels != "" {
		s += ", kernels " + m.Kernels
	}
	if m.Load != "" {
		s += ", load at the start " + m.Load
	}
	return s
}

func cpuName() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstField(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if fields := strings.Fields(string(b)); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
