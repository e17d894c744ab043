package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// elsewhere are the commands that other pages are about.
var elsewhere = []string{"plan", "module", "completion", "version"}

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

// TestTheManualListsEveryCommand compares docs/kubectl-machine.md with --help.
func TestTheManualListsEveryCommand(t *testing.T) {
	sections := manual(t)
	for _, command := range newRoot().Commands() {
		if !regexp.MustCompile("(?m)^\\| \\[?`" + command.Name() + "`.* \\| " + regexp.QuoteMeta(command.Short) + " \\|$").MatchString(sections[""]) {
			t.Errorf("the table of commands lacks %s with %q", command.Name(), command.Short)
		}
		if slices.Contains(elsewhere, command.Name()) {
			continue
		}
		for _, leaf := range leaves(command) {
			section, ok := sections[leaf.CommandPath()]
			delete(sections, leaf.CommandPath())
			if !ok || !strings.HasPrefix(section, "\n```\n"+leaf.UseLine()+"\n```\n") {
				t.Errorf("the page lacks a section %q that begins with a block %q", leaf.CommandPath(), leaf.UseLine())
			}
			compareFlags(t, leaf, sections["Flags of every command"], sections["Flags of several commands"], section)
			if !strings.Contains(sections["Rights"], "`"+strings.TrimPrefix(leaf.CommandPath(), "kubectl machine ")+"`") {
				t.Errorf("the section on rights does not say what %s needs", leaf.CommandPath())
			}
		}
	}
	for heading := range sections {
		if strings.HasPrefix(heading, "kubectl machine ") && strings.Count(heading, ":") == 0 {
			t.Errorf("the page has a section %q about no command; remove it", heading)
		}
	}
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

// compareFlags compares the rows for all commands, those for several, and those for one with its flags.
func compareFlags(t *testing.T, command *cobra.Command, common, several, own string) {
	t.Helper()
	known, shared, rows := helpRows(command), pageRows(common), pageRows(own)
	for name, want := range known {
		row := cmp.Or(rows[name], shared[name], pageRows(several)[name])
		if row != want {
			t.Errorf("the page says of --%s of %s\n%s\nand should say\n%s", name, command.CommandPath(), row, want)
		}
		delete(rows, name)
	}
	for name, row := range rows {
		t.Errorf("%s has no flag --%s; remove the row %s", command.CommandPath(), name, row)
	}
	for name := range shared {
		if known[name] == "" {
			t.Errorf("%s has no flag --%s, which every command should have", command.CommandPath(), name)
		}
	}
}

var flagRow = regexp.MustCompile("(?m)^\\| (?:`-[a-zA-Z]`, )?`--([a-z-]+)` \\|.*\\|$")

func pageRows(section string) map[string]string {
	rows := map[string]string{}
	for _, match := range flagRow.FindAllStringSubmatch(section, -1) {
		rows[match[1]] = match[0]
	}
	return rows
}

var flagHelp = regexp.MustCompile(`(?m)^ +(?:(-[a-zA-Z]), )?--([a-z-]+)(?: [a-zA-Z]+(?:\[="[a-z]+"\])?)?  +(.+?)(?: \(default (.+)\))?$`)

// helpRows are the rows that the page should have.
func helpRows(command *cobra.Command) map[string]string {
	rows := map[string]string{}
	for _, match := range flagHelp.FindAllStringSubmatch(command.LocalFlags().FlagUsages(), -1) {
		short, name, use, standard := match[1], match[2], match[3], match[4]
		first := "`--" + name + "`"
		if short != "" {
			first = "`" + short + "`, " + first
		}
		if standard != "" {
			standard = "`" + strings.Trim(standard, `"`) + "`"
		}
		rows[name] = fmt.Sprintf("| %s | %s | %s |", first, standard, use)
	}
	delete(rows, "help")
	return rows
}

// TestEveryCommandLineOfTheManualCanBeTyped looks at what the page shows behind a prompt.
func TestEveryCommandLineOfTheManualCanBeTyped(t *testing.T) {
	lines := 0
	for _, section := range manual(t) {
		for line := range strings.Lines(section) {
			typed, prompted := strings.CutPrefix(line, "$ kubectl machine ")
			if !prompted {
				continue
			}
			lines++
			typed, _, _ = strings.Cut(typed, "|")
			typed, _, _ = strings.Cut(typed, ">")
			command, arguments, err := newRoot().Find(strings.Fields(typed))
			if err == nil {
				err = command.ParseFlags(arguments)
			}
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err != nil || !command.Runnable() {
				t.Errorf("%q cannot be typed: %v", strings.TrimSpace(line), err)
			}
		}
	}
	if lines == 0 {
		t.Error("there are no lines behind a prompt")
	}
}
