package swarm

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1},
}

// ParseBytes reads a size: a whole number of bytes ("4096") or a number with a
// unit ("6GiB", "1.5 GB", "512M"; single letters are powers of 1024).
func ParseBytes(text string) (int64, error) {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		if whole < 0 {
			return 0, fmt.Errorf("size %q is negative: %w", text, ErrInvalid)
		}
		if whole > math.MaxInt64/unit {
			return 0, fmt.Errorf("size %q is too large: %w", text, ErrInvalid)
		}
		return whole * unit, nil
	}
	value, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsNaN(value) || unit == 1 && value != math.Trunc(value):
		return 0, fmt.Errorf("size %q: want a whole number of bytes or a number with a unit such as 6GiB: %w", text, ErrInvalid)
	case value < 0:
		return 0, fmt.Errorf("size %q is negative: %w", text, ErrInvalid)
	case value*float64(unit) >= math.MaxInt64:
		return 0, fmt.Errorf("size %q is too large: %w", text, ErrInvalid)
	}
	return int64(math.Round(value * float64(unit))), nil
}

// FormatBytes prints a size with the largest binary unit that leaves at least
// one, with at most two decimals: "6GiB", "1.33MiB", "12B".
func FormatBytes(bytes int64) string {
	for _, u := range sizeUnits[:4] {
		if bytes >= u.bytes {
			s := strconv.FormatFloat(float64(bytes)/float64(u.bytes), 'f', 2, 64)
			return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// A size decodes from a JSON number of bytes or a string with a unit.
type size int64

func (s *size) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		text = string(data)
	}
	n, err := ParseBytes(text)
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}
