//go:build !noengine && cgo

package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// bench135M loads the random model of 135 million parameters.
func bench135M(b *testing.B) Engine {
	b.Helper()
	if !FastKernels {
		b.Skip("slow kernels: set the C flags that the Makefile sets")
	}
	path := filepath.Join(b.TempDir(), "m.gguf")
	if err := randmodel.WriteFile(path, randmodel.SmolLM135M(1)); err != nil {
		b.Fatal(err)
	}
	e := newEngine(b, Options{ContextTokens: 1024, Cells: 12 * 1024})
	load(b, e, "m", path, 0, 29)
	return e
}

// BenchmarkDecode measures tokens per second of one and of eight sequences at
// positions from 64 on.
func BenchmarkDecode(b *testing.B) {
	e := bench135M(b)
	for _, streams := range []int{1, 8} {
		b.Run(strconv.Itoa(streams), func(b *testing.B) {
			var sessions []Session
			for range streams {
				s := open(b, e, "m", Range{0, 29}, 1024)
				defer s.Close()
				feed(b, s, make([]int32, 64), nil, WantLast)
				sessions = append(sessions, s)
			}
			b.ReportAllocs()
			b.ResetTimer()
			begin := cpuTime()
			var wg sync.WaitGroup
			for _, s := range sessions {
				wg.Go(func() {
					token := []int32{5}
					for i := range b.N {
						if at := 64 + i%900; at < s.Held() {
							if err := s.Truncate(at); err != nil {
								b.Error(err)
							}
						}
						out, err := s.Step(context.Background(), Input{Position: s.Held(), Tokens: token, Want: WantLast})
						if err != nil {
							b.Error(err)
							return
						}
						token[0] = argmax(out.Logits)
					}
				})
			}
			wg.Wait()
			report(b, b.N*streams, cpuTime()-begin)
		})
	}
}

// BenchmarkSmallStep measures what a step costs besides arithmetic: one token
// through one layer of the tiny model, and through the whole demo model.
func BenchmarkSmallStep(b *testing.B) {
	run := func(b *testing.B, s Session) {
		b.ReportAllocs()
		begin := cpuTime()
		token := []int32{5}
		for i := 0; b.Loop(); i++ {
			if s.Held() == 200 {
				if err := s.Truncate(0); err != nil {
					b.Fatal(err)
				}
			}
			feed(b, s, token, nil, WantLast)
		}
		report(b, b.N, cpuTime()-begin)
	}
	b.Run("layer", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "m.gguf")
		if err := randmodel.WriteFile(path, randmodel.Tiny(gguf.Q8_0, 1)); err != nil {
			b.Fatal(err)
		}
		e := newEngine(b, Options{})
		load(b, e, "m", path, 0, 0)
		run(b, open(b, e, "m", Range{0, 0}, 300))
	})
	b.Run("demo", func(b *testing.B) {
		e := newDemo(b, Options{}, 0, 11)
		run(b, open(b, e, "demo", Range{0, 11}, 300))
	})
}

// BenchmarkPrefill measures prompt tokens per second, by the prompt's length.
func BenchmarkPrefill(b *testing.B) {
	e := bench135M(b)
	s := open(b, e, "m", Range{0, 29}, 1024)
	for _, n := range []int{128, 512} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			begin := cpuTime()
			for b.Loop() {
				if err := s.Truncate(0); err != nil {
					b.Fatal(err)
				}
				feed(b, s, make([]int32, n), nil, WantLast)
			}
			report(b, b.N*n, cpuTime()-begin)
		})
	}
}

// BenchmarkProducts compares passes with our own products and with the kernels',
// by turns, for some numbers of rows: milliseconds of processor time per pass,
// and how many times as fast ours are.
func BenchmarkProducts(b *testing.B) {
	if !FastKernels {
		b.Skip("slow kernels: set the C flags that the Makefile sets")
	}
	c := randmodel.SmolLM135M(1)
	path := filepath.Join(b.TempDir(), "m.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		b.Fatal(err)
	}
	e := newEngine(b, Options{ContextTokens: 1024, Cells: 2048, MaxBatch: 512})
	var sides [2]Session
	for i, own := range []bool{true, false} {
		ownProducts = own
		load(b, e, strconv.Itoa(i), path, 0, 29)
		sides[i] = open(b, e, strconv.Itoa(i), Range{0, 29}, 1024)
	}
	ownProducts = true
	best := Instructions()
	defer UseInstructions(best)
	for _, kernel := range []string{"avx2", "avxvnni", "avx512vnni"} {
		for _, rows := range []int{1, 2, 4, 8, 16, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", kernel, rows), func(b *testing.B) {
				if !UseInstructions(kernel) {
					b.Skip("not on this machine")
				}
				compareProducts(b, sides, rows)
			})
		}
	}
}

// compareProducts computes prompts of so many rows on both sides by turns.
func compareProducts(b *testing.B, sides [2]Session, rows int) {
	var took [2]time.Duration
	for i := 0; b.Loop(); i++ {
		for k := range sides {
			s := sides[(i+k)%2]
			if err := s.Truncate(0); err != nil {
				b.Fatal(err)
			}
			begin := cpuTime()
			feed(b, s, make([]int32, rows), nil, WantLast)
			took[(i+k)%2] += cpuTime() - begin
		}
	}
	b.ReportMetric(took[0].Seconds()*1e3/float64(b.N), "ours-ms")
	b.ReportMetric(took[1].Seconds()*1e3/float64(b.N), "kernels-ms")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x")
}

// report gives tokens per second, and per second of processor time: with one
// thread the two are equal, unless the machine has other work.
func report(b *testing.B, tokens int, cpu time.Duration) {
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
	b.ReportMetric(float64(tokens)/cpu.Seconds(), "tok/cpu-s")
}

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
