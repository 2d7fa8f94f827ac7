package answer

import "hecate/internal/stage"

// chaos is the failure that the node of a stage shall inflict on itself, and its
// order. An order holds from its rescue on, for whoever computes the stage by
// then, until it has struck: a stage may be opened anew, by another try or because
// a rescue cut the route elsewhere. The rescue that a node is opened for counts
// as made.
func (a *Answer) chaos(index int, rescue bool) (*stage.Chaos, int) {
	made := 0
	if rescue {
		made = len(a.story.rescued) + 1
	}
	for i, c := range a.job.Chaos {
		if c.Stage == index && c.Rescues <= made && !a.struck[i+1] && !a.borne[i+1] {
			return &stage.Chaos{AtToken: c.AtToken, Prompt: len(a.job.Prompt), Action: c.Action}, i + 1
		}
	}
	return nil, 0
}

// bear notes which orders living links carry: nobody else gets them, also when a
// rescue gave those links other places. It is called before stages are opened.
func (a *Answer) bear() {
	if len(a.job.Chaos) == 0 {
		return
	}
	a.borne = map[int]bool{}
	for _, l := range a.links {
		if l != nil {
			a.borne[l.order] = true
		}
	}
}

// strikes notes that the node that carried an order failed.
func (a *Answer) strikes(order int) {
	if order == 0 {
		return
	}
	if a.struck == nil {
		a.struck = map[int]bool{}
	}
	a.struck[order] = true
}
