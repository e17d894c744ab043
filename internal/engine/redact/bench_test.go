package redact

import (
	"fmt"
	"strings"
	"testing"
)

// userDataOf returns user data with a number of lines.
func userDataOf(lines int) string {
	var out strings.Builder
	out.WriteString("#cloud-config\nwrite_files:\n")
	for i := range lines {
		fmt.Fprintf(&out, "- {path: /etc/file-%d, content: secret-%08x}\n", i, i*2654435761)
	}
	return out.String()
}

// The time that a text takes does not depend on how much there is to search for, as long as it has none of it.
func BenchmarkRedact(b *testing.B) {
	text := strings.Repeat("creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400\n", 100)
	for _, lines := range []int{10, 100, 1000} {
		r := New([]string{userDataOf(lines)})
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r.Redact(text)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, lines := range []int{10, 100, 1000} {
		secret := []string{userDataOf(lines)}
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(secret)
			}
		})
	}
}

// A ratio holds on any machine: what is searched for ten times as much takes as long, and a text ten times as long ten times the time.
func TestTheTimeOfASearchIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	// the worst case: a text that goes on for long as what is searched for does
	secret := strings.Repeat("a", 4096) + "b"
	r := New([]string{secret})
	measure := func(size int) float64 {
		text := strings.Repeat("a", size)
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				r.Contains(text)
			}
		})
		return float64(result.NsPerOp())
	}
	if ratio := measure(100<<10) / measure(10<<10); ratio > 30 {
		t.Errorf("a text ten times as long takes %.1f times the time", ratio)
	}
}
