package cli

import (
	"errors"
	"os"

	"hecate/swarm"
)

// readTopology reads a topology file; every fault is the file's author's.
func readTopology(path string) (swarm.Topology, error) {
	data, err := readInput(path)
	if err != nil {
		return swarm.Topology{}, err
	}
	t, err := swarm.DecodeTopology(data)
	if err != nil {
		return swarm.Topology{}, usage("%s: %w", path, err)
	}
	return t, nil
}

// planTopology plans the swarm of a topology file.
func planTopology(path string, copies int, weights *swarm.Weights) (*swarm.Plan, error) {
	if copies < 1 {
		return nil, usage("--copies is %d, want at least 1", copies)
	}
	t, err := readTopology(path)
	if err != nil {
		return nil, err
	}
	plan, err := swarm.Planner{Copies: copies, Weights: weights}.Plan(t.Nodes, t.Models, nil)
	if err != nil {
		return nil, usage("%s: %w", path, err)
	}
	return plan, nil
}

// readInput reads a file that the command line names.
func readInput(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var where *os.PathError
	if errors.As(err, &where) {
		return nil, usage("read %s: %w", path, where.Err)
	}
	return data, err
}
