package sim

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"hecate/swarm"
)

// Lengths say how long prompts and answers are: prompts log-normal with a
// spread of one, answers exponential, both within 1 and eight times the mean.
type Lengths struct {
	Prompt int // mean tokens of a prompt; 0 means 256
	Output int // mean tokens of an answer; 0 means 128
}

func (l Lengths) withDefaults() Lengths {
	if l.Prompt == 0 {
		l.Prompt = 256
	}
	if l.Output == 0 {
		l.Output = 128
	}
	return l
}

// draw makes one request of these lengths.
func (l Lengths) draw(chance *rand.Rand, at time.Duration, models []int32) Arrival {
	const sigma = 1.0
	prompt := float64(l.Prompt) * math.Exp(sigma*chance.NormFloat64()-sigma*sigma/2)
	output := float64(l.Output) * chance.ExpFloat64()
	return Arrival{At: at, Prompt: within(prompt, l.Prompt), Output: within(output, l.Output), Model: models[chance.IntN(len(models))]}
}

func within(tokens float64, mean int) int32 {
	return int32(min(max(1, math.Round(tokens)), 8*float64(mean)))
}

// Traffic lists the models that requests ask for, as numbers in the plan, once
// per copy: requests divide among models as their copies do. Models that only
// stand in for others are not asked for.
func Traffic(plan *swarm.Plan) []int32 {
	var out []int32
	for _, p := range plan.Pipelines {
		i := slices.IndexFunc(plan.Models, func(m swarm.ModelSpec) bool { return m.ID == p.Model })
		if plan.Models[i].FallbackFor == "" {
			out = append(out, int32(i))
		}
	}
	return out
}

// Poisson makes n requests that come independently of one another, so many per
// second on average, from time zero on, for models drawn from a list (Traffic).
func Poisson(n int, rate float64, lengths Lengths, models []int32, seed uint64) []Arrival {
	lengths = lengths.withDefaults()
	chance := rand.New(rand.NewPCG(seed, 0x706f6973736f6e00))
	out := make([]Arrival, n)
	at := 0.0
	for i := range out {
		at += chance.ExpFloat64() / rate
		out[i] = lengths.draw(chance, time.Duration(at*1e9), models)
	}
	return out
}

// Burst makes n requests at times spread evenly at random over a short while.
func Burst(n int, at, over time.Duration, lengths Lengths, models []int32, seed uint64) []Arrival {
	lengths = lengths.withDefaults()
	chance := rand.New(rand.NewPCG(seed, 0x6275727374000000))
	out := make([]Arrival, n)
	for i := range out {
		out[i] = lengths.draw(chance, at+time.Duration(chance.Float64()*float64(over)), models)
	}
	byTime(out)
	return out
}

// Merge puts several arrival processes into one, by time.
func Merge(all ...[]Arrival) []Arrival {
	out := slices.Concat(all...)
	byTime(out)
	return out
}

func byTime(a []Arrival) {
	slices.SortStableFunc(a, func(x, y Arrival) int { return int(x.At - y.At) })
}

// maxTrace bounds a trace: it is kept in memory.
const maxTrace = 20_000_000

// ReadTrace reads recorded requests, one a line: seconds from the start, prompt
// tokens, answer tokens and, if there are several models, the model's id. Empty
// lines and what follows a # are ignored; lines may be in any order. The error
// names the line.
func ReadTrace(in io.Reader, models []swarm.ModelSpec) ([]Arrival, error) {
	var out []Arrival
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		a, err := parseArrival(words, models)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(out) == maxTrace {
			return nil, fmt.Errorf("line %d: more than %d requests: %w", n, maxTrace, swarm.ErrInvalid)
		}
		out = append(out, a)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no requests in the trace: %w", swarm.ErrInvalid)
	}
	byTime(out)
	return out, nil
}

func parseArrival(words []string, models []swarm.ModelSpec) (Arrival, error) {
	if len(words) < 3 || len(words) > 4 {
		return Arrival{}, fmt.Errorf("%q: want seconds, prompt tokens, answer tokens and perhaps a model: %w", strings.Join(words, " "), swarm.ErrInvalid)
	}
	at, err := strconv.ParseFloat(words[0], 64)
	if err != nil || !(at >= 0 && at < 1e9) {
		return Arrival{}, fmt.Errorf("time %q: want seconds from 0: %w", words[0], swarm.ErrInvalid)
	}
	prompt, err := strconv.ParseUint(words[1], 10, 24)
	if err != nil {
		return Arrival{}, fmt.Errorf("prompt %q: want tokens: %w", words[1], swarm.ErrInvalid)
	}
	output, err := strconv.ParseUint(words[2], 10, 24)
	if err != nil || output < 1 {
		return Arrival{}, fmt.Errorf("answer %q: want at least 1 token: %w", words[2], swarm.ErrInvalid)
	}
	a := Arrival{At: time.Duration(at * 1e9), Prompt: int32(prompt), Output: int32(output)}
	if len(words) == 4 {
		i := slices.IndexFunc(models, func(m swarm.ModelSpec) bool { return m.ID == words[3] })
		if i < 0 {
			return Arrival{}, fmt.Errorf("unknown model %q: %w", words[3], swarm.ErrInvalid)
		}
		a.Model = int32(i)
	}
	return a, nil
}
