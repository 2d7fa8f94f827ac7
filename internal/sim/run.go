package sim

import (
	"context"
	"runtime"
	"sync"
)

// Run lives through a scenario under one policy. The same scenario and policy
// give the same result, to the last digit on processors of one kind. It takes
// as long as it takes; ctx ends it early.
func Run(ctx context.Context, s Scenario, policy Policy) (Result, error) {
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return Result{}, err
	}
	w := newWorld(&s, policy)
	if err := w.run(ctx); err != nil {
		return Result{}, err
	}
	return w.result(policy.Name), nil
}

// Compare lives through a scenario once per policy, as many at a time as there
// are processors. Results stand in the order of the policies.
func Compare(ctx context.Context, s Scenario, policies []Policy) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]Result, len(policies))
	errs := make([]error, len(policies))
	seats := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range policies {
		wg.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			if results[i], errs[i] = Run(ctx, s, policies[i]); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}
