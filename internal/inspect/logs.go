package inspect

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// attachedOutput is the attachment of a state that holds the engine's output of the last run, attachedWithheld the one that holds what was
// withheld of it.
const (
	attachedOutput   = "output"
	attachedWithheld = "withheld"
)

// maxOutput bounds what it is unpacked to.
const maxOutput = 1 << 20

// EngineOutput is the engine's output of the last run for a Machine.
type EngineOutput struct {
	// Text is empty where the engine did not start or the output had no room.
	Text string
	// Withheld are messages whose text may hold values of sensitive inputs, and is not in Text.
	Withheld string
	// Last is the run; nil where that is not recorded.
	Last *LastRun
	// Lock is held by a run that goes on, and whose output is not known yet.
	Lock *state.Lock
}

// EngineOutput reads the engine's output of the last run for a Machine.
func (c *Cluster) EngineOutput(ctx context.Context, machine string) (*EngineOutput, error) {
	snapshot, err := c.State(ctx, machine)
	if err != nil {
		return nil, c.neverRan(ctx, machine, err)
	}
	output, err := newOutput(snapshot)
	if err != nil {
		return nil, err
	}
	if output.Last == nil && output.Text == "" {
		return nil, fmt.Errorf("no run for the Machine %q has ended that kept its output; 'kubectl machine runs %s' shows whether one goes on", machine, machine)
	}
	return output, nil
}

// neverRan returns the error of a Machine without a state with what its conditions say of the reason; any other error as it is.
func (c *Cluster) neverRan(ctx context.Context, machine string, err error) error {
	if _, none := errors.AsType[*noStateError](err); !none {
		return err
	}
	known, findErr := c.find(ctx, Selection{Names: []string{machine}}, kindMachine)
	if findErr != nil || len(known.machines()) == 0 {
		return err
	}
	return fmt.Errorf("no run has begun for the Machine %q, so that there is no output of the engine. %s", machine, conditionsOf(&known.machines()[0]))
}

// conditionsOf says what the conditions of a Machine say that are not as they should be.
func conditionsOf(machine *machinev1beta1.Machine) string {
	var said []string
	for _, one := range machine.Status.Conditions {
		if one.Status != corev1.ConditionTrue && one.Message != "" {
			said = append(said, fmt.Sprintf("%s is %s (%s): %s", one.Type, one.Status, one.Reason, print.OneLine(one.Message)))
		}
	}
	if len(said) == 0 {
		return fmt.Sprintf("Its conditions say nothing of the reason; 'kubectl describe machine.machine.openshift.io %s' shows its events, and the manager's log whether it runs", machine.Name)
	}
	return "Its conditions: " + strings.Join(said, "; ")
}

func newOutput(snapshot *state.Snapshot) (*EngineOutput, error) {
	output := &EngineOutput{Lock: snapshot.Lock}
	var err error
	if output.Last, err = ReadLastRun(snapshot.Meta); err != nil {
		return nil, err
	}
	if output.Text, err = unpack(snapshot.Attachments[attachedOutput]); err != nil {
		return nil, unreadable(snapshot, err)
	}
	if output.Withheld, err = unpack(snapshot.Attachments[attachedWithheld]); err != nil {
		return nil, unreadable(snapshot, err)
	}
	return output, nil
}

// unpack returns a text that is kept compressed, none for none.
func unpack(packed []byte) (string, error) {
	if packed == nil {
		return "", nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(reader, maxOutput))
	if err != nil {
		return "", err
	}
	return printable(string(text)), nil
}

func unreadable(snapshot *state.Snapshot, err error) error {
	return fmt.Errorf("reading the engine's output in Secret %s: %w", snapshot.Key, err)
}

// printable removes control characters, which could move a terminal's cursor, from a text of many lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// Notes say what run the output is of.
func (o *EngineOutput) Notes(now time.Time) []string {
	var notes []string
	if o.Lock != nil {
		notes = append(notes, fmt.Sprintf("a %s goes on, for %s now; what follows is of the run before", o.Lock.Operation, print.Age(o.Lock.Since, now)))
	}
	if o.Last != nil {
		notes = append(notes, o.Last.String())
	}
	if o.Last != nil && o.Last.Message != "" {
		notes = append(notes, print.OneLine(o.Last.Message))
	}
	if o.Text == "" {
		notes = append(notes, "the engine's output is not kept: the run ended before there was any, or there was no room beside the inputs")
	}
	if o.Withheld != "" {
		notes = append(notes, "messages that may hold values of sensitive inputs are withheld; --withheld prints them, without the strings that are known to be secret")
	}
	return notes
}
