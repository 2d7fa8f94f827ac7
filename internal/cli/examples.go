package cli

import "strings"

// What --help shows below the flags of the commands that people meet first.
// A test of the documents reads these lines too, and no command line in them
// may be one that hecate would not take.

// examples are command lines, told one below the other.
func examples(lines ...string) string { return "Examples:\n  " + strings.Join(lines, "\n  ") }

// Help is shown by hecate up --help.
func (*upCmd) Help() string {
	return examples(`hecate up                                            # three nodes, two copies, the built-in demo model`,
		`hecate up --model llama.gguf --nodes 4 --copies 2 --threads 2`)
}

// Help is shown by hecate serve --help.
func (*serveCmd) Help() string {
	return examples(`hecate serve --listen 0.0.0.0:8080 --advertise attic.lan`,
		`hecate serve --model /srv/models/llama.gguf --copies 3`)
}

// Help is shown by hecate chat --help.
func (*chatCmd) Help() string {
	return examples(`hecate chat "What happens when a node dies?"`,
		`hecate chat --url http://attic.lan:8080 --key KEY       # a conversation`)
}

// Help is shown by hecate status --help.
func (*statusCmd) Help() string {
	return examples(`hecate status                # nodes, copies, what a death would mean`,
		`hecate status --json --url http://attic.lan:8080`)
}

// Help is shown by hecate node run --help.
func (*nodeRunCmd) Help() string {
	return examples(`hecate node run --join TOKEN --name desk --memory 6GiB   # the first time`,
		`hecate node run --threads 4                              # ever after`)
}

// Help is shown by hecate model add --help.
func (*modelAddCmd) Help() string {
	return examples(`hecate model add /srv/models/llama.gguf`,
		`hecate model add llama.gguf --name chat --copies 2 --priority 5`)
}

// Help is shown by hecate engine add --help.
func (*engineAddCmd) Help() string {
	return examples(`hecate engine add gpu1 10.0.0.7:8000 --model llama=meta-llama/Llama-3.1-8B-Instruct`,
		`hecate engine add paid https://api.example.com --key-env PAID_KEY --parallel 8`)
}

// Help is shown by hecate key create --help.
func (*keyCreateCmd) Help() string {
	return examples(`hecate key create --note laptop`,
		`hecate key create --rpm 60 --parallel 2 --life 720h --models chat --note "a guest"`)
}

// Help is shown by hecate token create --help.
func (*tokenCreateCmd) Help() string {
	return examples(`hecate token create                                       # lets one machine in, for a day`,
		`hecate token create --uses 2 --life 1h --note "the new laptops"`)
}

// Help is shown by hecate chaos --help.
func (*chaosCmd) Help() string {
	return examples(`hecate chaos arm --stage 1 --at-token 20 --action kill    # the swarm needs --allow-chaos`,
		`hecate chaos run examples/drills/power-cut.drill`)
}

// Help is shown by hecate bench --help.
func (*benchCmd) Help() string {
	return examples(`hecate bench failover --runs 200`,
		`hecate bench pool --seconds 60 --json`)
}
