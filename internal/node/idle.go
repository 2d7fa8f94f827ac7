package node

import "hecate/internal/control"

// idleReason is why the plan gives this node nothing, "" when it gives it
// something or says nothing about it.
func idleReason(doc *control.PlanDocument, node string) string {
	if mine, ok := doc.Plan.Node(node); ok && len(mine.Fragments) > 0 {
		return ""
	}
	for _, i := range doc.Plan.Idle {
		if i.Node == node {
			return i.Reason
		}
	}
	return ""
}

// tellIdle says once, in one line, that this node holds nothing and why.
func (n *Node) tellIdle(doc *control.PlanDocument) {
	reason := idleReason(doc, n.member.ID())
	if reason != "" && reason != n.idle {
		n.log.Warn("the plan gives this node nothing to hold", "because", reason, "budget", n.cfg.Memory)
	}
	n.idle = reason
}
