package swarm_test

import (
	"fmt"

	"hecate/swarm"
)

// Three equal machines, each with room for two thirds of the model, keep two
// copies of it: any one of them may die.
func ExamplePlanner() {
	model := swarm.ModelSpec{ID: "home", Layers: 12, LayerBytes: []int64{1 << 30}, Copies: 2}
	budget, err := swarm.MinimumNodeMemory(model, 3, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := []swarm.NodeProfile{
		{ID: "gpu", MemoryBytes: budget, Score: 10, LatencyMS: 8},
		{ID: "laptop", MemoryBytes: budget, Score: 3, LatencyMS: 9},
		{ID: "mini", MemoryBytes: budget, Score: 6, LatencyMS: 6},
	}
	plan, err := swarm.Planner{}.Plan(nodes, []swarm.ModelSpec{model}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("budget", swarm.FormatBytes(budget))
	for _, p := range plan.Pipelines {
		fmt.Println("copy", p.ID, p.Stages)
	}
	fmt.Println("shared", plan.SharedNodes[0].Node)
	fmt.Println("valid", plan.Validate() == nil)
	// Output:
	// budget 8.42GiB
	// copy 0 [mini[0-3] gpu[4-11]]
	// copy 1 [laptop[0-7] mini[8-11]]
	// shared mini
	// valid true
}

// A swarm loses the node that both copies need, and serves on.
func ExampleSwarm() {
	nodes := []swarm.NodeProfile{
		{ID: "gpu", MemoryBytes: 9 << 30, Score: 10, LatencyMS: 8},
		{ID: "laptop", MemoryBytes: 9 << 30, Score: 3, LatencyMS: 9},
		{ID: "mini", MemoryBytes: 9 << 30, Score: 6, LatencyMS: 6},
	}
	s, err := swarm.New(nodes, swarm.Config{Layers: 12, LayerBytes: 1 << 30, Pipelines: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	route, _ := s.Route(swarm.Request{})
	fmt.Println(s.Status().State, route)
	rescue, err := s.MarkDown("mini")
	fmt.Println(s.Status().State, rescue, err)
	// Output:
	// healthy base: mini[0-3] gpu[4-11] 38.333333ms
	// degraded base: laptop[0-3] gpu[4-11] 47.166667ms <nil>
}

// From one plan to the next in steps: before a node frees a layer, somebody
// else holds it.
func ExampleTransition() {
	model := swarm.ModelSpec{ID: "home", Layers: 12, LayerBytes: []int64{1 << 30}, Copies: 1}
	planner := swarm.Planner{HeadroomPercent: -1}
	two := []swarm.NodeProfile{{ID: "a", MemoryBytes: 8 << 30, Score: 1}, {ID: "b", MemoryBytes: 8 << 30, Score: 1}}
	before, err := planner.Plan(two, []swarm.ModelSpec{model}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	big := swarm.NodeProfile{ID: "big", MemoryBytes: 16 << 30, Score: 1}
	after, err := planner.Plan(append(two, big), []swarm.ModelSpec{model}, before)
	if err != nil {
		fmt.Println(err)
		return
	}
	t := swarm.Transition(before, after)
	for _, step := range t.Steps {
		fmt.Println(step)
	}
	fmt.Println(swarm.FormatBytes(t.LoadedBytes), "loaded, interruptions:", len(t.Interruptions))
	// Output:
	// load big home[0-11]
	// 12GiB loaded, interruptions: 0
}
