package swarm

import "time"

// fading is how far something that is old by age has faded, 0 fresh to 1
// gone: half at half, three quarters at three times half. A plain quotient,
// not an exponential, because the last digits of the standard library's
// exponential differ between processors.
func fading(age, half time.Duration) float64 {
	if age <= 0 {
		return 0
	}
	return float64(age) / (float64(age) + float64(half))
}
