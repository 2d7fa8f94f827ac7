package answer

// A Collector takes the hidden states of the last layer, row by row in order of
// their positions, each once. It is called by one goroutine at a time.
type Collector interface {
	// Collected is how many rows it has.
	Collected() int
	// Collect takes rows from a position on; the first of them may be known.
	Collect(position int, rows []float32, width int)
}

// States computes the prompt alone and gives the last layer's states to the
// job's collector, whatever it takes. Rows that were collected before a failure
// are not asked for again. Errors are those of Next.
func (a *Answer) States() error {
	a.story.asked()
	err := a.insist(func() error {
		if err := a.ready(); err != nil {
			return err
		}
		if err := a.level(a.ctx); err != nil {
			return err
		}
		_, err := a.fill(a.ctx, len(a.tokens))
		return err
	})
	if err == nil {
		a.proven = len(a.tokens)
		a.story.resumed(a)
	}
	return err
}

// collects says that a step's rows are wanted by the collector.
func (a *Answer) collects(end int) bool { return a.job.States.Collected() < end }
