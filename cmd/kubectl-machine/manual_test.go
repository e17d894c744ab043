package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/test/golden"
)

// manual is docs/kubectl-machine.md, by the headings of its sections.
func manual(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/kubectl-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split("\n"+string(page), "\n## ") {
		heading, text, _ := strings.Cut(section, "\n")
		sections[heading] = text
	}
	return sections
}

// TestTheManualHasEveryCommand compares docs/kubectl-machine.md with the commands that work on a cluster.
func TestTheManualHasEveryCommand(t *testing.T) {
	sections := manual(t)
	for _, leaf := range leaves(newRoot()) {
		name := strings.TrimPrefix(leaf.CommandPath(), "kubectl machine ")
		if group, _, _ := strings.Cut(name, " "); slices.Contains([]string{"plan", "module", "completion", "version"}, group) {
			continue
		}
		if _, ok := sections[leaf.CommandPath()]; !ok {
			t.Errorf("the page has no section %q", leaf.CommandPath())
		}
		delete(sections, leaf.CommandPath())
		if !strings.Contains(sections["Rights"], "`"+name+"`") {
			t.Errorf("the section Rights does not list %s", name)
		}
	}
	for heading := range sections {
		if strings.HasPrefix(heading, "kubectl machine ") {
			t.Errorf("the page has a section %q, but there is no such command", heading)
		}
	}
}

// TestReference compares docs/reference/kubectl-machine.md with --help. With -update, as make generate runs it, it writes the page.
func TestReference(t *testing.T) {
	golden.Check(t, "../../docs/reference/kubectl-machine.md", reference())
}

// printFlags are flags that go with --output, as in kubectl.
var printFlags = []string{"`--allow-missing-template-keys`", "`--no-headers`", "`--show-managed-fields`", "`--template`"}

// reference lists kubectl's flags, then those that several commands share, then each command with its own.
func reference() string {
	cluster := &cobra.Command{Use: "cluster"}
	(&cli.ClusterFlags{}).Register(cluster, "Namespace of the Machines. Default: the context's.")
	kubectl, commands, uses := flagLines(cluster), leaves(newRoot()), map[string]int{}
	for _, command := range commands {
		for _, line := range flagLines(command) {
			uses[line]++
		}
	}
	var several []string
	var sections strings.Builder
	for _, command := range commands {
		fmt.Fprintf(&sections, "\n## %s\n\n```\n%s\n```\n\n", command.CommandPath(), command.UseLine())
		var shared []string
		for _, line := range flagLines(command) {
			switch {
			case slices.Contains(kubectl, line), slices.Contains(printFlags, flagName.FindString(line)):
			case uses[line] > 3:
				several = append(several, line)
				shared = append(shared, flagName.FindString(line))
			default:
				sections.WriteString(line)
			}
		}
		if len(shared) > 0 {
			fmt.Fprintf(&sections, "- shared: %s\n", strings.Join(shared, " "))
		}
	}
	slices.Sort(several)
	return "# Reference: commands and flags of kubectl machine\n\n" +
		"`make generate` writes this page from `--help`. [kubectl machine](../kubectl-machine.md) explains\nthe commands.\n" +
		"\n## Shared flags\n\n" +
		"Commands that connect to a cluster also have kubectl's flags, which `kubectl options` describes;\n" +
		"`--request-timeout` is 30s by default. Those with `--output` have kubectl's flags for printing:\n" +
		strings.Join(printFlags, ", ") + ".\n\nSeveral commands have these:\n\n" +
		strings.Join(slices.Compact(several), "") + strings.ReplaceAll(sections.String(), "\n\n\n", "\n\n")
}

func leaves(command *cobra.Command) []*cobra.Command {
	if !command.HasSubCommands() {
		return []*cobra.Command{command}
	}
	var all []*cobra.Command
	for _, child := range command.Commands() {
		all = append(all, leaves(child)...)
	}
	return all
}

var flagName = regexp.MustCompile("`--[a-z-]+`")

var flagHelp = regexp.MustCompile(`(?m)^ +(?:(-[a-zA-Z]), )?--([a-z-]+)(?: [a-zA-Z]+(?:\[="[a-z]+"\])?)?  +(.+?)(?: \(default (.+)\))?$`)

// flagLines returns a line for each flag of a command.
func flagLines(command *cobra.Command) []string {
	var lines []string
	for _, match := range flagHelp.FindAllStringSubmatch(command.LocalFlags().FlagUsages(), -1) {
		short, name, use, standard := match[1], match[2], match[3], match[4]
		if name == "help" {
			continue
		}
		first := "`--" + name + "`"
		if short != "" {
			first = "`" + short + "`, " + first
		}
		if standard != "" && name != "parallel" { // the default of that one is the machine's
			first += " (`" + strings.Trim(standard, `"`) + "`)"
		}
		lines = append(lines, fmt.Sprintf("- %s: %s\n", first, use))
	}
	return lines
}

var (
	// shown is a command of the plugin in a block of a page.
	shown = regexp.MustCompile(`(?m)^ *(?:\$ )?(?:kubectl machine|bin/kubectl-machine) (.*)$`)
	// quoted is one argument for a shell, or the name of one.
	quoted = regexp.MustCompile(`"[^"]*"|'[^']*'|<[^>]*>`)
)

// TestEveryCommandInTheDocsIsValid parses the commands of the plugin that pages show, without running them.
func TestEveryCommandInTheDocsIsValid(t *testing.T) {
	lines := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "modules/*/README.md", "examples/*/*/README.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			if filepath.Base(page) == "CHANGELOG.md" || strings.Contains(page, "reference") {
				continue
			}
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for i, block := range strings.Split(string(content), "```") {
				if i%2 == 0 {
					continue
				}
				for _, line := range shown.FindAllStringSubmatch(block, -1) {
					lines++
					if err := parses(line[1]); err != nil {
						t.Errorf("%s: kubectl machine %s: %v", page, line[1], err)
					}
				}
			}
		}
	}
	if lines < 50 {
		t.Errorf("got %d commands, want more than 50: the pattern is wrong", lines)
	}
}

func parses(line string) error {
	typed := quoted.ReplaceAllString(line, "X")
	for _, end := range []string{" #", "|", ">"} {
		typed, _, _ = strings.Cut(typed, end)
	}
	command, arguments, err := newRoot().Find(strings.Fields(typed))
	if err != nil {
		return err
	}
	if err := command.ParseFlags(arguments); err != nil {
		return err
	}
	if !command.Runnable() {
		return errors.New("not a complete command")
	}
	return command.ValidateArgs(command.Flags().Args())
}
