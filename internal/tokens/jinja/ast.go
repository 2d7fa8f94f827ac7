package jinja

// expr is a node that has a value.
type expr interface{ at() int }

// pos is a node's line.
type pos int

func (p pos) at() int { return int(p) }

type (
	literal struct {
		pos
		v Value
	}
	name struct {
		pos
		id string
	}
	attribute struct {
		pos
		of   expr
		attr string
	}
	subscript struct {
		pos
		of, key expr
	}
	slicing struct {
		pos
		of             expr
		from, to, step expr // nil when left out
	}
	arguments struct {
		args  []expr
		names []string // keyword arguments, in order
		kw    []expr
	}
	call struct {
		pos
		fn expr
		arguments
	}
	filtering struct {
		pos
		of   expr // nil in filter blocks: the body
		name string
		arguments
	}
	isTest struct {
		pos
		of   expr
		name string
		not  bool
		arguments
	}
	unary struct {
		pos
		op string
		x  expr
	}
	binary struct {
		pos
		op   string
		x, y expr
	}
	comparison struct { // a < b < c, as Python chains them
		pos
		first expr
		ops   []string
		rest  []expr
	}
	conditional struct {
		pos
		then, cond, other expr // other nil: undefined
	}
	listLit struct {
		pos
		items []expr
		tuple bool
	}
	dictLit struct {
		pos
		keys, values []expr
	}
)

// stmt is a node that writes or changes something.
type stmt interface{}

type (
	output struct {
		pos
		x expr
	}
	text   struct{ s string }
	ifStmt struct {
		pos
		cond        expr
		then, other []stmt
	}
	forStmt struct {
		pos
		vars        []string
		over, where expr // where nil: all
		body, other []stmt
	}
	setStmt struct {
		pos
		targets []target
		x       expr
	}
	setBlock struct {
		pos
		to     target
		body   []stmt
		filter []*filtering
	}
	withStmt struct {
		pos
		names  []string
		values []expr
		body   []stmt
	}
	filterBlock struct {
		pos
		filter []*filtering
		body   []stmt
	}
	macroStmt struct {
		pos
		name     string
		params   []string
		defaults []expr // nil: none
		body     []stmt
	}
	callBlock struct {
		pos
		call   *call
		caller *macroStmt
	}
	group    struct{ body []stmt } // a block that only marks its body
	jumpStmt struct {
		pos
		brk bool
	}
)

// target is what a set statement assigns to: a name, or a namespace's attribute.
type target struct {
	pos
	name, attr string
}
