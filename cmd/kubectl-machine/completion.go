package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are the shells with a completion script.
var shells = map[string]func(root *cobra.Command, out io.Writer) error{
	"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
	"powershell": func(root *cobra.Command, out io.Writer) error { return root.GenPowerShellCompletionWithDesc(out) },
	"zsh":        func(root *cobra.Command, out io.Writer) error { return root.GenZshCompletion(out) },
}

func newCompletion() *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes words on the command line",
		Long: "Print a script that completes words for kubectl-machine in a shell: " + strings.Join(names, ", ") + `.

For "kubectl machine", kubectl runs the program kubectl_complete-machine on PATH. Archives of releases contain it, 'make install-plugin' installs it, and
the second example creates it.`,
		Example: `  # kubectl-machine, in this shell
  source <(kubectl machine completion bash)

  # kubectl machine, in every shell that completes kubectl
  printf '#!/bin/sh\nexec kubectl machine __complete "$@"\n' >~/.local/bin/kubectl_complete-machine
  chmod +x ~/.local/bin/kubectl_complete-machine`,
		Args:                  cobra.ExactArgs(1),
		ValidArgs:             names,
		DisableFlagsInUseLine: true,
		RunE: func(command *cobra.Command, arguments []string) error {
			generate, known := shells[arguments[0]]
			if !known {
				return fmt.Errorf("there is no completion for %q; name one of %s", arguments[0], strings.Join(names, ", "))
			}
			return generate(command.Root(), command.OutOrStdout())
		},
	}
}
