package cli

import "hecate/swarm"

// weighing is how commands that work on paper are told to price nodes.
type weighing struct {
	Preset string             `help:"Weights to price with: default or fast-lan." enum:"default,fast-lan" default:"default"`
	Weight map[string]float64 `help:"Change single weights: latency, load, capacity, hop, prompt." placeholder:"NAME=NUMBER"`
}

// weights are the preset with the changes; nil when both are left alone.
func (w *weighing) weights() (*swarm.Weights, error) {
	if w.Preset != "fast-lan" && len(w.Weight) == 0 {
		return nil, nil
	}
	out := swarm.DefaultWeights()
	if w.Preset == "fast-lan" {
		out = swarm.FastLAN()
	}
	fields := map[string]*float64{"latency": &out.Latency, "load": &out.Load, "capacity": &out.Capacity, "hop": &out.Hop, "prompt": &out.Prompt}
	for name, value := range w.Weight {
		field := fields[name]
		if field == nil {
			return nil, usage("--weight %s: unknown weight, want latency, load, capacity, hop or prompt", name)
		}
		*field = value
	}
	if err := out.Validate(); err != nil {
		return nil, usage("--weight: %w", err)
	}
	return &out, nil
}

// onPaper refuses weights where a running swarm is asked, which has its own.
func (w *weighing) onPaper(topology string) (*swarm.Weights, error) {
	weights, err := w.weights()
	if err == nil && weights != nil && topology == "" {
		return nil, usage("--preset and --weight need --topology: a running swarm has weights of its own")
	}
	return weights, err
}
