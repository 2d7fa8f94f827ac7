package pool

import (
	"testing"
	"time"
)

func TestStaticRequirement(t *testing.T) {
	for _, tt := range []struct{ endpoints, base, shadow, want int }{
		{0, 3, 1, 0}, {1, 3, 1, 3}, {1, 1, 1, 2}, {1, 3, 5, 6}, {1, 1, 0, 1}, {2, 3, 1, 3}, {5, 3, 1, 5}, {5, 8, 9, 8},
	} {
		s := DefaultSettings()
		s.FloorBase, s.ShadowWriters = tt.base, tt.shadow
		if got := staticRequirement(tt.endpoints, &s); got != tt.want {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
}

func TestWantsFloor(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   floorInput
		mode FloorMode
		want int
	}{
		{"in use", floorInput{endpoints: 1, sessions: 1, idle: time.Hour, used: true}, FloorAdaptive, 3},
		{"young", floorInput{endpoints: 1, idle: 89 * time.Second}, FloorAdaptive, 3},
		{"idle, never used", floorInput{endpoints: 1, idle: 90 * time.Second}, FloorAdaptive, 2},
		{"in its grace", floorInput{endpoints: 1, idle: 179 * time.Second, used: true}, FloorAdaptive, 3},
		{"grace is over", floorInput{endpoints: 1, idle: 180 * time.Second, used: true}, FloorAdaptive, 2},
		{"static", floorInput{endpoints: 1, idle: time.Hour}, FloorStatic, 3},
		{"no endpoints", floorInput{idle: time.Hour}, FloorAdaptive, 0},
	} {
		s := DefaultSettings()
		s.Floor = tt.mode
		if got := wantsFloor(tt.in, &s); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestFitFloors(t *testing.T) {
	claims := func() []floorClaim {
		return []floorClaim{
			{target: 5, lowest: 2, sessions: 4},
			{target: 5, lowest: 2, idle: time.Minute},
			{target: 5, lowest: 2, idle: time.Hour},
			{target: 5, lowest: 2, sessions: 1},
		}
	}
	for _, tt := range []struct {
		limit int
		want  [4]int
	}{
		{20, [4]int{5, 5, 5, 5}},
		{19, [4]int{5, 5, 4, 5}}, // idle longest first
		{17, [4]int{5, 4, 3, 5}}, // in turns
		{14, [4]int{5, 2, 2, 5}},
		{13, [4]int{5, 2, 2, 4}}, // then the least used
		{8, [4]int{2, 2, 2, 2}},
		{1, [4]int{2, 2, 2, 2}}, // the lowest floor outranks the cap
	} {
		got := claims()
		fitFloors(got, tt.limit)
		for i, c := range got {
			if c.target != tt.want[i] {
				t.Errorf("limit %d: claim %d is %d, want %v", tt.limit, i, c.target, tt.want)
			}
		}
	}
}

func TestIdleFloorFallsAndDemandRaisesIt(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		s := w.open("n1", OpenOptions{})
		settle(time.Second)
		s.Close(CodeNormal)
		settle(170 * time.Second)
		if g := w.group("n1"); g.FloorTarget != 3 {
			t.Fatalf("%+v: the grace time is not over", g)
		}
		settle(70 * time.Second) // then idle refresh does not replace the third
		if g := w.group("n1"); g.FloorTarget != 2 || g.FloorCurrent != 2 {
			t.Fatalf("%+v: want the idle floor", g)
		}
		s = w.open("n1", OpenOptions{})
		settle(100 * time.Millisecond)
		if g := w.group("n1"); g.FloorTarget != 3 || g.FloorCurrent != 3 {
			t.Errorf("%+v: demand does not raise the floor at once", g)
		}
		s.Close(CodeNormal)
	})
}

func TestLoweringAFloorClosesNoBoundWriter(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.start("n1", echo, nil)
		w.apply("n1")
		settle(time.Second)
		var sessions []Session
		for range 9 {
			sessions = append(sessions, w.open("n1", OpenOptions{}))
		}
		low := DefaultSettings()
		low.FloorBase, low.FloorMin, low.ShadowWriters = 1, 1, 0
		if err := w.pool.Reload(low); err != nil {
			t.Fatal(err)
		}
		settle(10 * time.Minute)
		for _, s := range sessions {
			mustEcho(t, s, []byte("x"))
			select {
			case <-s.Draining():
				t.Error("a bound writer drains because the floor was lowered")
			default:
			}
			s.Close(CodeNormal)
		}
		settle(10 * time.Minute)
		if g := w.group("n1"); g.FloorTarget != 1 || g.FloorCurrent != 1 {
			t.Errorf("%+v", g)
		}
	})
}

func TestCapsCompressIdleGroupsFirst(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"max_writers":          func(s *Settings) { s.MaxWriters = 7 },
		"max_writers_per_core": func(s *Settings) { s.MaxWritersPerCore = 1; s.ShadowWriters = 3; s.FloorMin = 3 }, // 8 cores
	} {
		inWorld(t, change, func(w *world) {
			for _, n := range []string{"n1", "n2", "n3"} {
				w.start(n, echo, nil)
			}
			w.apply("n1", "n2", "n3")
			settle(time.Second)
			s := w.open("n2", OpenOptions{})
			settle(time.Second)
			sum := 0
			for _, g := range w.pool.Snapshot().Groups {
				sum += g.FloorTarget
			}
			busy := w.group("n2").FloorTarget
			if full := staticRequirement(1, w.pool.settings()); busy != full && name == "max_writers" {
				t.Errorf("%s: the group in use is compressed to %d", name, busy)
			}
			if limit := max(writerCap(w.pool.settings(), 8), 3*w.pool.settings().FloorMin); sum > limit {
				t.Errorf("%s: targets add up to %d, limit %d", name, sum, limit)
			}
			s.Close(CodeNormal)
		})
	}
}
