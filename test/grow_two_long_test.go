//go:build long && !noengine

package test

import (
	"testing"
)

// TestFortyChatsOverEachOfTwoGateways: a context of 16,384, three NATS servers, forty
// chats over each gateway at once, which want several times the room there is. First
// nothing else happens, then a node of two whole copies is killed, then a gateway.
func TestFortyChatsOverEachOfTwoGateways(t *testing.T) {
	const each, limit = 40, 1000
	s := startTalkers(t, 3, 16384, "20MiB", "--copies", "2")
	want := s.alone(2*each, limit)
	for round, cut := range []bool{false, false, true} {
		before := s.gaveWay()
		first, second := s.talk(s.gateways[0], 0, want[:each], limit, cut), s.talk(s.gateways[1], each, want[each:], limit, false)
		switch round {
		case 1:
			s.grownAgain(2 * each)
			s.nodes["b"].Kill()
		case 2:
			s.grownAgain(2 * each)
			s.gateways[0].Kill()
		}
		one, two := first(), second()
		if cut {
			s.gateways = s.gateways[1:]
		} else {
			t.Logf("round %d: gave way %v times, before %v; %d useful rows; rescues %d", round, s.gaveWay(), before, one.rows+two.rows, one.rescues+two.rescues)
		}
		s.settled()
		if one.told+one.cut != each || two.told != each || !cut && one.cut > 0 {
			t.Errorf("round %d: %d and %d answers came to their ends, %d were cut off", round, one.told, two.told, one.cut)
		}
	}
}
