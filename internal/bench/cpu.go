package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: Linux has it fixed for programs.
const tick = 10 * time.Millisecond

// cpuTime is the processor time that processes have used so far; 0 where the
// system does not tell it in /proc. A process that has ended counts for nothing.
func cpuTime(pids []int) time.Duration {
	var sum time.Duration
	for _, pid := range pids {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			sum += parseStat(string(b))
		}
	}
	return sum
}

// parseStat adds user and system time, the 14th and 15th field. The second is the
// program's name in parentheses, which may hold anything.
func parseStat(line string) time.Duration {
	i := strings.LastIndexByte(line, ')')
	if i < 0 {
		return 0
	}
	fields := strings.Fields(line[i+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0
	}
	u, err1 := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(u+s) * tick
}
