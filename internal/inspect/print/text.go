package print

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Reference returns the metadata of an object by which -o name prints it.
func Reference(kind schema.GroupVersionKind, namespace, name string) metav1.PartialObjectMetadata {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	object.SetGroupVersionKind(kind)
	return object
}

// MachineReference is Reference for a Machine.
func MachineReference(namespace, name string) metav1.PartialObjectMetadata {
	return Reference(machinev1beta1.GroupVersion.WithKind("Machine"), namespace, name)
}

// narrow is how much of a text a table shows that is not wide.
const narrow = 100

// Aligned returns rows in columns, for what is no table of kubectl.
func Aligned(rows [][]string) []byte {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = OneLine(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() //nolint:errcheck // a buffer takes everything
	var trimmed bytes.Buffer
	for line := range strings.Lines(text.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.Bytes()
}

// OneLine keeps a text of others from breaking the table, or the terminal: it is on one line, and what a terminal would obey is written out.
func OneLine(text string) string {
	return Printable(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text))
}

// Cut shortens a text for a table that is not wide.
func Cut(text string, wide bool) string {
	if letters := []rune(text); !wide && len(letters) > narrow {
		return string(letters[:narrow-3]) + "..."
	}
	return text
}

// Short returns a module's reference with the first digits of its digest.
func Short(reference string) string {
	const digits = 12
	name, digest, ok := strings.Cut(reference, "@sha256:")
	if !ok || len(digest) <= digits {
		return reference
	}
	return name + "@" + digest[:digits]
}

// AgeOf is Age for a time that may not be known.
func AgeOf(at *metav1.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return Age(at.Time, now)
}

// Age returns how long ago something was, and a dash when it was never.
func Age(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(at)))
}
