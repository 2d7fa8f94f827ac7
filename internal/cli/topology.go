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

// readInput reads a file that the command line names.
func readInput(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	var where *os.PathError
	if errors.As(err, &where) {
		return nil, usage("read %s: %w", path, where.Err)
	}
	return data, err
}
