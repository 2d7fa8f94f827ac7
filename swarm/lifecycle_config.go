package swarm

import (
	"fmt"
	"slices"
)

// A Config says what a Swarm serves. Either Models or Layers must be given.
type Config struct {
	// Layers describes the base model in its simplest form: that many layers
	// of LayerBytes each, under the id Model ("base" when empty). It is used
	// when Models is empty.
	Layers     int
	LayerBytes int64
	Model      string

	// Models are the base models and their declared fallbacks, in full. The
	// first one that is no fallback is the base model that Route asks for,
	// unless Model names another.
	Models []ModelSpec

	// Pipelines is how many copies of each base model are planned; at least 1.
	// A spec that states its own copies keeps them.
	Pipelines int

	// Catalogue lists the experts that may be placed in what the base models
	// leave. Growth decides; nil means PriorityGrowth.
	Catalogue []ModelSpec
	Growth    GrowthPolicy

	// Fallback is the model that may stand in, labelled, when the base model
	// cannot be served; "" means the one whose spec is declared FallbackFor
	// it, and if there is none, that nothing may.
	Fallback string

	Planner Planner  // headroom and planning weights
	Weights *Weights // for routing; nil: DefaultWeights
}

// resolved fills in what the short form leaves open and checks the rest.
func (c Config) resolved() (Config, error) {
	if c.Pipelines < 1 {
		return c, fmt.Errorf("%d pipelines; want at least 1: %w", c.Pipelines, ErrInvalid)
	}
	if len(c.Models) == 0 {
		if c.Model == "" {
			c.Model = "base"
		}
		c.Models = []ModelSpec{{ID: c.Model, Layers: c.Layers, LayerBytes: []int64{c.LayerBytes}}}
	}
	c.Models = slices.Clone(c.Models)
	c.Catalogue = slices.Clone(c.Catalogue)
	for i := range c.Models {
		if c.Models[i].Expert {
			return c, fmt.Errorf("model %q is an expert; it belongs into the catalogue: %w", c.Models[i].ID, ErrInvalid)
		}
	}
	for i := range c.Catalogue {
		c.Catalogue[i].Expert = true
	}
	all := slices.Concat(c.Models, c.Catalogue)
	if err := checkModels(all); err != nil {
		return c, err
	}
	if err := checkFallbacks(all); err != nil {
		return c, err
	}
	c.Planner.Copies = c.Pipelines
	if c.Growth == nil {
		c.Growth = PriorityGrowth{}
	}
	if err := c.Planner.Validate(); err != nil {
		return c, err
	}
	if c.Weights != nil {
		if err := c.Weights.Validate(); err != nil {
			return c, err
		}
	}
	return c.withBase()
}

// withBase settles which model Route asks for and that the fallback exists.
func (c Config) withBase() (Config, error) {
	known := func(id string) bool {
		return slices.ContainsFunc(slices.Concat(c.Models, c.Catalogue), func(m ModelSpec) bool { return m.ID == id })
	}
	if c.Model == "" {
		i := slices.IndexFunc(c.Models, func(m ModelSpec) bool { return m.FallbackFor == "" })
		if i < 0 {
			return c, fmt.Errorf("every model is a fallback and none is the base: %w", ErrInvalid)
		}
		c.Model = c.Models[i].ID
	}
	if !slices.ContainsFunc(c.Models, func(m ModelSpec) bool { return m.ID == c.Model }) {
		return c, fmt.Errorf("base model %q is not among the models: %w", c.Model, ErrInvalid)
	}
	if c.Fallback != "" && (!known(c.Fallback) || c.Fallback == c.Model) {
		return c, fmt.Errorf("fallback %q is no other model of the swarm: %w", c.Fallback, ErrInvalid)
	}
	return c, nil
}
