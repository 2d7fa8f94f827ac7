package cli

import (
	"fmt"
	"os"
	"path/filepath"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by hecate completion --help.
func (*completionCmd) Help() string {
	return "The shell asks hecate itself for completions, so they are never out of date.\n\nExamples:\n" +
		"  eval \"$(hecate completion bash)\"                      # in ~/.bashrc\n" +
		"  eval \"$(hecate completion zsh)\"                       # in ~/.zshrc\n" +
		"  hecate completion fish > ~/.config/fish/completions/hecate.fish"
}

// completions by shell; the program's path goes in twice.
var completions = map[string]string{
	"bash": "complete -C %[1]q hecate\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -C %[1]q hecate\n",
	"fish": "function __complete_hecate\n    set -lx COMP_LINE (commandline -cp)\n    test -z (commandline -ct); and set COMP_LINE \"$COMP_LINE \"\n    %[1]q\nend\ncomplete -f -c hecate -a \"(__complete_hecate)\"\n",
}

// Run prints what a shell must evaluate.
func (cmd *completionCmd) Run(c console) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	_, err = fmt.Fprintf(c.out, completions[cmd.Shell], self)
	return err
}
